"""What the gate promises on its wire, at its terminal and on disk."""

from tests.requirements import Requirement

SEED = "protocol page"
ALL: list[Requirement] = [
    Requirement("GATE-FRAME-01", "One request per connection, one response line, then close", SEED),
    Requirement("GATE-FRAME-02", "A request line is at most 1 MiB with its newline", SEED),
    Requirement(
        "GATE-FRAME-03", "A line without its newline is named as that, not as bad JSON", SEED
    ),
    Requirement("GATE-FRAME-04", "A silent or slow handshake ends after ten seconds", "§3"),
    Requirement("GATE-FRAME-05", "Over the in-flight cap the answer is busy, at once", "§3"),
    Requirement("GATE-FRAME-06", "Nothing is answered to nothing: no byte, or an empty line", "§3"),
    Requirement(
        "GATE-REQ-01", "Every field but pipeline is optional, with the stated defaults", SEED
    ),
    Requirement("GATE-REQ-02", "privileged defaults to true", SEED),
    Requirement("GATE-REQ-03", "Unknown fields are ignored", SEED),
    Requirement(
        "GATE-REQ-04", "Wrong types, duplicates, NaN and lone surrogates are refused", "§4"
    ),
    Requirement("GATE-VAL-01", "Checks run in one fixed order with fixed messages", "§5"),
    Requirement("GATE-VAL-02", "Forbidden characters refuse the whole request", "§5.1"),
    Requirement("GATE-VAL-03", "forward_agent is only valid without privilege", SEED),
    Requirement("GATE-VAL-04", "A refused request does not use up its id", "§5"),
    Requirement("GATE-VAL-05", "sudo can read no command name as an option or assignment", "§11"),
    Requirement("GATE-TIME-01", "time must be present, ISO 8601 and at most 60 seconds old", SEED),
    Requirement("GATE-TIME-02", "time may be at most 5 seconds ahead", "§6"),
    Requirement(
        "GATE-REPLAY-01", "An id is admitted once while its bytes could still be fresh", "§7"
    ),
    Requirement(
        "GATE-ENV-01", "Only allowlisted variables, anything else is an error by name", "§8"
    ),
    Requirement("GATE-ENV-02", "Children get a clean environment", "§8"),
    Requirement("GATE-RES-01", "ok carries one stage entry per command and the last stdout", SEED),
    Requirement("GATE-RES-02", "denied and timeout carry no stages, stdout or message", "§9"),
    Requirement("GATE-RES-03", "Truncation flags are present only when true", SEED),
    Requirement(
        "GATE-ASK-01", "Nothing runs unless y was pressed for exactly that question", "§10"
    ),
    Requirement("GATE-ASK-02", "One question at a time, in order of arrival", SEED),
    Requirement(
        "GATE-ASK-03", "A caller that hung up is not served; a half-closed one is", "§10.2"
    ),
    Requirement("GATE-ASK-04", "Early keys and bursts of keys decide nothing", "§12.3"),
    Requirement("GATE-ASK-05", "A command that does not fit cannot be approved unread", "§12.3"),
    Requirement("GATE-ASK-06", "Different pipelines never look the same", "§12.3"),
    Requirement("GATE-ASK-07", "A denial can carry a note for the caller", "§12.3"),
    Requirement("GATE-ASK-08", "Every stage shows the file that will run", "§12.3"),
    Requirement("GATE-ASK-09", "The terminal is restored on every way out", "§12.2"),
    Requirement(
        "GATE-ASK-10", "After a question left by itself the next is armed later and says so", "A6"
    ),
    Requirement("GATE-ASK-11", "All that reaches the command can be read before y counts", "A2"),
    Requirement("GATE-ASK-12", "A question has one place on the screen and is whole there", "A4"),
    Requirement("GATE-ASK-13", "Nothing a caller sends can start a row of the screen", "A7"),
    Requirement("GATE-ASK-14", "What others than root can still change is named", "A1"),
    Requirement("GATE-ASK-15", "One caller can be denied as a whole, and takes few places", "A8"),
    Requirement("GATE-EXE-01", "No shell; children run in / with umask 077 and fds 0 to 2", "§11"),
    Requirement("GATE-EXE-02", "A signal death is exit code -1", "§11"),
    Requirement("GATE-EXE-03", "Each stream is capped at 16 MiB and flagged only beyond it", "§11"),
    Requirement(
        "GATE-EXE-04", "An overrun is killed, reported, and leaves no process behind", "§11"
    ),
    Requirement("GATE-EXE-05", "A lingering grandchild does not hold up the answer", "§11"),
    Requirement("GATE-EXE-06", "A file swapped after approval is not run", "§11"),
    Requirement(
        "GATE-EXE-07", "sudo is given -- before the command and asks on the terminal", "§11"
    ),
    Requirement("GATE-EXE-08", "The file that was shown runs, whatever its path does", "A1"),
    Requirement("GATE-EXE-09", "Only a sudo that root alone can change is ever run", "A5"),
    Requirement("GATE-EXE-10", "The person can end what runs, and the caller is told", "§11"),
    Requirement("GATE-RULE-01", "A rule allows what it says word for word", "rules"),
    Requirement("GATE-RULE-02", "A rule is about one file that only root can change", "rules"),
    Requirement("GATE-RULE-03", "The environment must equal the rule's", "rules"),
    Requirement("GATE-RULE-04", "Root's rules come from a file only root can change", "rules"),
    Requirement("GATE-RULE-05", "Beyond its limit a rule asks, whoever used it", "rules"),
    Requirement("GATE-RULE-06", "deny is before ask, and ask before allow", "rules"),
    Requirement("GATE-RULE-07", "What explain says and what the gate does never differ", "rules"),
    Requirement("GATE-RULE-08", "The own rules count once read and accepted by a key", "rules"),
    Requirement("GATE-GRANT-01", "A grant covers one pipeline, its files and one caller", "grants"),
    Requirement("GATE-GRANT-02", "A grant takes two presses, and a held key is not two", "grants"),
    Requirement("GATE-GRANT-03", "A grant ends by time, uses, revoking and denials", "grants"),
    Requirement("GATE-GRANT-04", "Each use is on record and on the screen first", "grants"),
    Requirement("GATE-CTL-01", "ping answers pong and the version without a question", "§13"),
    Requirement("GATE-CTL-02", "stop ends an idle gate and is refused by a busy one", "§13"),
    Requirement(
        "GATE-SOCK-01", "The socket is 0600; a live one is never taken, a dead one is", "§2"
    ),
    Requirement("GATE-END-01", "Signals answer open requests, remove the socket and end us", "§14"),
    Requirement(
        "GATE-AUD-01", "Receipt, decision and completion are recorded in a hash chain", "§22"
    ),
    Requirement("GATE-AUD-02", "Without the record a privileged command does not run", "§22"),
    Requirement("GATE-AUD-03", "Refused requests are recorded too, a bounded number", "§22"),
    Requirement("GATE-AUD-04", "A log removed, cut, changed or replaced never verifies", "A9"),
    Requirement("GATE-AUD-05", "Requests that are withdrawn cannot fill the disk", "A9"),
    Requirement("GATE-CLI-01", "stringd request passes on output, status and refusals", "§15"),
    Requirement("GATE-KEY-01", "A passkey registered at the terminal approves", "point 5"),
    Requirement("GATE-KEY-02", "A passkey approves only if its user was verified", "point 5"),
    Requirement("GATE-KEY-03", "Only what the gate's own page got signed counts", "point 5"),
    Requirement("GATE-KEY-04", "A signature counts once, for exactly what was shown", "point 5"),
    Requirement("GATE-KEY-05", "The answer and the log name the passkey that decided", "point 5"),
    Requirement("GATE-KEY-06", "The first answer wins, at the terminal or by passkey", "point 5"),
    Requirement("GATE-KEY-07", "The page answers this account, under its own name only", "point 5"),
    Requirement("GATE-KEY-08", "A revoked passkey approves nothing", "point 5"),
    Requirement("GATE-KEY-09", "Nothing counts or listens before a key at the terminal", "point 5"),
]
