"""What bash topics and `/exec` promise."""

from tests.requirements import Requirement

_SEED = "transport and response format pages"
_SPEC = "documents and commands 11"
_OURS = "our own choice"

ALL = [
    Requirement("BASH-01", "Plain text to a bash topic is shell input, also after a /.", _SEED),
    Requirement("BASH-02", "A reply is `exit: N | cwd: path`, ---, output.", _SEED),
    Requirement("BASH-03", "A non-zero status is a failure EXIT_<n> in the same layout.", _SPEC),
    Requirement("BASH-04", "Without output the content is `(no output)`.", _SPEC),
    Requirement("BASH-05", "//name is a command about the topic: help, info, close.", _SEED),
    Requirement("BASH-06", "Other // names, a bare // and blank input are refused.", _SPEC),
    Requirement("BASH-07", "Directory, variables and functions persist per topic.", _SPEC),
    Requirement("BASH-08", "A time-out is EXIT_124 and ends the command.", "defect 1"),
    Requirement("BASH-09", "A command that reads input neither hangs nor confuses.", "defect 2"),
    Requirement("BASH-10", "After the shell exits the next input starts a fresh one.", _SPEC),
    Requirement("BASH-11", "//info shows cwd and pid; without a shell it says so.", _SPEC),
    Requirement("BASH-12", "//close ends the shell, clears variables, always succeeds.", _SPEC),
    Requirement("BASH-13", "A new bash topic starts in the request's cwd, else home.", "ruling 17"),
    Requirement("BASH-14", "Deleting session or user, or stopping, ends the shell.", _SEED),
    Requirement("BASH-15", "Commands of one topic run in order, topics side by side.", _SEED),
    Requirement("BASH-16", "A running command is continued by //input, //key, //wait.", _OURS),
    Requirement("BASH-17", "//kill ends the running command.", _OURS),
    Requirement("BASH-18", "//output reads any part of the last output.", _OURS),
    Requirement("BASH-19", "Shells see the user's environment without our secrets.", _OURS),
    Requirement("BASH-20", "//key and //kill reach a command whose request still waits.", _OURS),
    Requirement("BASH-21", "$?, set -e and ERR traps mean what they do at bash's prompt.", _OURS),
    Requirement("BASH-22", "After a restart the first reply says that the shell is new.", _OURS),
    Requirement("EXEC-01", "/exec runs one command in a fresh shell with closed input.", _SPEC),
    Requirement("EXEC-02", "/exec without a command is refused.", _SPEC),
    Requirement("EXEC-03", "/exec exports session variables not starting with _.", _SPEC),
    Requirement("EXEC-04", "/exec is ended by the time limit with EXIT_124.", "defect 1"),
]
