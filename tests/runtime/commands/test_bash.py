"""Bash topics and `/exec` through a real daemon."""

import os
import select
import signal
from concurrent.futures import ThreadPoolExecutor, as_completed, wait
from pathlib import Path
from uuid import uuid4

import pytest

from stringd.runtime.commands.bash import META_COMMANDS
from tests.requirements import proves
from tests.runtime.commands.conftest import USER, Caller, StartDaemon
from tests.runtime.shell.support import alive
from tests.support.daemon import WAIT_SECONDS

SECRET = "marker-71c2"


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon) -> Caller:
    return start_daemon(STRINGD_BASH_QUIET_MS="5000", STRINGD_MARKER=SECRET, OPENAI_API_KEY=SECRET)


@pytest.fixture(scope="module")
def hasty(start_daemon: StartDaemon) -> Caller:
    """Gives commands two seconds, which on a busy machine is too little for those that end."""
    return start_daemon(STRINGD_BASH_TIMEOUT_MS="2000")


@pytest.fixture
def topic() -> str:
    return f"bash:{uuid4().hex}"


@proves("BASH-01", "BASH-02")
def test_plain_text_runs_in_the_shell(call: Caller, topic: str) -> None:
    assert call(topic, "echo hi").content == f"exit: 0 | cwd: {call.home}\n---\nhi"
    assert call(topic, "/bin/echo /slash").content.endswith("---\n/slash")
    assert call(topic, "echo one\necho two").content.endswith("---\none\ntwo")


@proves("BASH-03", "BASH-04")
def test_a_failure_keeps_the_layout(call: Caller, topic: str) -> None:
    reply = call(topic, "(exit 42)")
    assert (reply.ok, reply.code) == (False, "EXIT_42")
    assert reply.content == f"ERROR(EXIT_42): exit: 42 | cwd: {call.home}\n---\n(no output)"


@proves("BASH-05")
def test_help_lists_every_command_about_the_topic(call: Caller, topic: str) -> None:
    content = call(topic, "//help").content
    assert content.startswith("Bash Session\n---\n")
    for name in ("help", "info", "close", "input", "key", "wait", "kill", "output"):
        assert f"//{name}" in content


@proves("BASH-06")
@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("//", "Invalid meta-command. Use //help for details."),
        (
            "//Nope x",
            "Unknown bash meta-command: //Nope\nUse //help for available commands.",
        ),
    ],
)
def test_what_is_no_command_about_the_topic_is_refused(
    call: Caller, topic: str, text: str, message: str
) -> None:
    reply = call(topic, text)
    assert reply.code == "COMMAND_UNSUPPORTED"
    assert reply.content == f"ERROR(COMMAND_UNSUPPORTED): {message}"


@proves("BASH-07")
def test_state_persists_in_a_topic_and_is_not_shared(call: Caller, topic: str) -> None:
    call(topic, "cd /usr; x=kept; f() { echo $x; }")
    assert call(topic, "f").content == "exit: 0 | cwd: /usr\n---\nkept"
    assert call(f"{topic}-other", "echo x=$x").content.endswith("x=")


@proves("BASH-08")
def test_a_time_out_is_124_and_pollutes_nothing(hasty: Caller, topic: str) -> None:
    reply = hasty(topic, "while :; do echo tick; sleep 0.2; done")
    assert reply.code == "EXIT_124"
    assert reply.content.startswith(f"ERROR(EXIT_124): exit: 124 | cwd: {hasty.home}\n---\ntick")
    assert "timed out after 2 s" in reply.content
    assert hasty(topic, "echo clean").content.endswith("---\nclean")


@proves("BASH-09", "BASH-16")
def test_a_command_that_waits_for_input_is_continued(call: Caller, topic: str) -> None:
    reply = call(topic, "read -p 'name? ' x; echo hello $x")
    assert reply.ok
    assert reply.content.startswith(f"exit: running | cwd: {call.home}\n---\nname?\n[still running")
    refused = call(topic, "echo too early")
    assert refused.code == "CONFLICT"
    assert "//input" in refused.content
    assert call(topic, "//input Ada Lovelace").content.endswith("---\nhello Ada Lovelace")
    assert call(topic, "echo next").content.endswith("---\nnext")


@proves("BASH-16")
def test_keys_and_waiting(call: Caller, topic: str) -> None:
    assert call(topic, "cat").content.startswith("exit: running")
    assert call(topic, "//wait 1").content.startswith("exit: running")
    assert call(topic, "//key bogus").code == "INVALID_PAYLOAD"
    assert call(topic, "//wait soon").code == "INVALID_PAYLOAD"
    assert call(topic, "//input\none\ntwo").content.split("\n")[2:4] == ["one", "two"]
    assert call(topic, "//key ctrl-d").content.startswith("exit: 0")
    assert call(topic, "//input late").code == "INVALID_TARGET"


@proves("BASH-17")
def test_kill_ends_the_running_command(call: Caller, topic: str) -> None:
    assert call(topic, "sleep 1000").content.startswith("exit: running")
    assert "sleep 1000 (running)" in call(topic, "//info").content
    assert call(topic, "//kill").code == "EXIT_130"
    assert call(topic, "//kill").content == "No command is running."


@proves("BASH-20")
@pytest.mark.parametrize("message", ["//kill", "//key ctrl-c"])
def test_a_command_whose_request_still_waits_is_reached_at_once(
    call: Caller, topic: str, message: str
) -> None:
    call(topic, "mkfifo started")
    with ThreadPoolExecutor() as pool:
        text = "echo working; sh -c 'echo >started; exec sleep 99'"
        running = pool.submit(call, topic, text)
        call(f"{topic}-other", "cat started")
        meddled = call(topic, message)
        assert meddled.code == "EXIT_130"
        assert "another request waits for `echo working" in meddled.content
        reply = running.result()
    assert (reply.code, reply.content.partition("---\n")[2]) == ("EXIT_130", "working")


@proves("BASH-20")
def test_a_command_that_never_falls_silent_can_be_typed_to(call: Caller, topic: str) -> None:
    call(topic, "mkfifo started")
    with ThreadPoolExecutor() as pool:
        chatty = "echo >started; until read -t 0.1 x; do echo tick; done; echo got $x"
        running = pool.submit(call, topic, chatty)
        call(f"{topic}-other", "cat started")
        typed = call(topic, "//input  two words ")
        assert "another request waits for `echo >started" in typed.content
        assert running.result().content.endswith("\ngot two words")


@proves("BASH-20")
def test_a_full_queue_keeps_nobody_from_ending_the_command(call: Caller, topic: str) -> None:
    call(topic, "mkfifo started; n=0")
    with ThreadPoolExecutor(20) as pool:
        running = pool.submit(call, topic, "echo >started; while :; do echo; sleep 0.1; done")
        call(f"{topic}-other", "cat started")
        waiting = [pool.submit(call, topic, "echo $((++n))") for _ in range(17)]
        refused = next(iter(as_completed(waiting))).result()
        assert refused.content.startswith("QUEUE_FULL") or refused.code == "QUEUE_FULL"
        ended = call(topic, "//kill").code
        # On a busy machine the interrupt may take longer than it is given.
        assert ended in ("EXIT_130", "EXIT_137")
        assert running.result().code == ended
        ran = sorted(int(f.result().content.rpartition("\n")[2]) for f in waiting if f.result().ok)
    assert ran == list(range(1, 17))


@proves("BASH-10")
def test_an_exit_is_told_and_followed_by_a_fresh_shell(call: Caller, topic: str) -> None:
    reply = call(topic, "x=1; cd /usr; exit 3")
    assert reply.code == "EXIT_3"
    assert "fresh shell" in reply.content
    assert call(topic, "//output").ok
    assert call(topic, "echo x=$x").content == f"exit: 0 | cwd: {call.home}\n---\nx="


@proves("BASH-10")
def test_a_shell_that_ended_unseen_is_replaced_and_the_next_reply_says_so(
    call: Caller, topic: str
) -> None:
    pid = int(call(topic, "echo $$").content.rpartition("\n")[2])
    ended = os.pidfd_open(pid)
    os.kill(pid, signal.SIGKILL)
    assert select.select([ended], [], [], WAIT_SECONDS)[0]
    os.close(ended)
    reply = call(topic, "echo next")
    assert "---\nnext\n[the earlier shell of this topic had ended" in reply.content
    assert call(topic, "echo later").content.endswith("---\nlater")


@proves("BASH-11")
def test_info_tells_where_the_shell_stands(call: Caller, topic: str) -> None:
    (call.home / "sub").mkdir(exist_ok=True)
    assert call(topic, "//info").content == "Bash session info\n---\ncwd:       (no active shell)"
    call(topic, "true")
    assert call(topic, "//info").content == (
        "Bash session info\n---\ncwd:       ~/\npid:       running"
    )
    call(topic, "cd sub")
    assert "cwd:       ~/sub/\n" in call(topic, "//info").content
    call(topic, "cd /usr")
    assert "cwd:       /usr\n" in call(topic, "//info").content


@proves("BASH-12")
def test_close_ends_the_shell_and_always_succeeds(call: Caller, topic: str) -> None:
    pid = int(call(topic, "echo $$").content.rpartition("\n")[2])
    assert call(topic, "//close").content == "Bash session closed."
    assert not alive(pid)
    assert call(topic, "//close").content == "Bash session closed."
    assert "(no active shell)" in call(topic, "//info").content


@proves("BASH-13")
def test_a_new_topic_starts_in_the_requests_directory(
    call: Caller, topic: str, tmp_path: Path
) -> None:
    assert call(topic, "pwd", tmp_path).content == f"exit: 0 | cwd: {tmp_path}\n---\n{tmp_path}"
    assert call(topic, "pwd").content.endswith(str(tmp_path))


@proves("BASH-14")
def test_deleting_a_session_ends_its_shell(call: Caller, topic: str) -> None:
    pids = _started(call, topic)
    call.request("DELETE", f"/sessions/{USER}/{topic}")
    assert not any(map(alive, pids))


@proves("BASH-14")
def test_deleting_a_user_and_stopping_the_daemon_end_their_shells(
    own_daemon: Caller,
) -> None:
    call = own_daemon
    pids = _started(call, "bash:one")
    call.request("DELETE", f"/users/{USER}")
    assert not any(map(alive, pids))
    again = Caller(call.daemon)
    pids = _started(again, "bash:one")
    again.daemon.stop()
    assert not any(map(alive, pids))


@proves("BASH-14")
def test_shells_do_not_outlive_a_daemon_that_crashed(own_daemon: Caller) -> None:
    call = own_daemon
    pid = int(call("bash:one", "echo $$").content.rpartition("\n")[2])
    ended = os.pidfd_open(pid)
    call.daemon.kill()
    assert select.select([ended], [], [], WAIT_SECONDS)[0]
    os.close(ended)


RESTARTED = (
    "[stringd was restarted: this is a new shell; the directory, variables and jobs of the one "
    "before are gone]"
)


@proves("BASH-22")
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_first_reply_after_a_restart_says_that_the_shell_is_new(
    own_daemon: Caller, end: str
) -> None:
    call = own_daemon
    assert RESTARTED not in call("bash:one", "cd /; x=1").content
    assert RESTARTED not in call("bash:two", "true").content
    call("bash:two", "//close")
    getattr(call.daemon, end)()
    call.daemon.start()
    again = Caller(call.daemon)
    assert again("bash:one", "echo [$x]").content.endswith(f"---\n[]\n{RESTARTED}")
    assert RESTARTED not in again("bash:one", "echo later").content
    for topic in ("bash:two", "bash:never"):
        assert RESTARTED not in again(topic, "true").content


@proves("BASH-22")
def test_a_shell_lost_with_its_first_command_is_not_forgotten(own_daemon: Caller) -> None:
    call = own_daemon
    gate = call.home / "gate"
    os.mkfifo(gate)
    with ThreadPoolExecutor() as pool:
        lost = pool.submit(call, "bash:one", f"read x < {gate}")
        writing = os.open(gate, os.O_WRONLY)
        call.daemon.kill()
        os.close(writing)
        wait([lost])
    call.daemon.start()
    assert RESTARTED in Caller(call.daemon)("bash:one", "true").content


def _started(call: Caller, topic: str) -> list[int]:
    """A shell, a job of it and a job that left its session."""
    reply = call(
        topic,
        "sleep 1000 & echo $$ $!; setsid sh -c 'echo $$ >left; exec sleep 1001' &\n"
        "while ! test -s left; do :; done; cat left; rm left",
    )
    pids = [int(word) for word in reply.content.split() if word.isdigit()]
    assert len(pids) >= 3
    return pids


@proves("BASH-15")
def test_commands_of_one_topic_wait_for_each_other(call: Caller, topic: str) -> None:
    call(topic, "mkfifo -m 600 gate; n=0")
    with ThreadPoolExecutor() as pool:
        first = pool.submit(call, topic, "read x <gate; n=$((n + 1)); echo first $n $x")
        second = pool.submit(call, topic, "n=$((n + 1)); echo second $n")
        call(f"{topic}-other", "echo go >gate; rm gate")
        lines = {first.result().content.rpartition("\n")[2], second.result().content[-8:]}
    assert lines in ({"first 1 go", "second 2"}, {"first 2 go", "second 1"})


@proves("BASH-18")
def test_the_full_output_can_be_read_by_range(call: Caller, topic: str) -> None:
    assert call(topic, "//output").code == "INVALID_TARGET"
    shown = call(topic, "seq 1 50000").content
    assert "left out; //output reads them]" in shown
    assert call(topic, "//output 40000-40001").content == (
        "output: lines 40000-40001 of 50000\n---\n40000\n40001"
    )
    assert call(topic, "//output -1").content.endswith("\n50000")
    assert call(topic, "//output nonsense").code == "INVALID_PAYLOAD"
    assert call(topic, "//output background").content.endswith("(no output)")


@proves("BASH-19")
def test_shells_do_not_see_the_daemons_secrets(call: Caller, topic: str) -> None:
    look = "env; cat /proc/$$/environ; cat /proc/self/environ"
    assert SECRET not in call(topic, look).content
    assert SECRET not in call("file:x", f"/exec {look}").content


def test_the_manual_has_a_heading_for_every_command_about_the_topic() -> None:
    manual = (Path(__file__).parents[3] / "docs" / "bash.md").read_text()
    assert [name for name in META_COMMANDS if f"### //{name}\n" not in manual] == []


def test_a_nul_character_is_refused(call: Caller, topic: str) -> None:
    assert call(topic, "echo \0").code == "INVALID_PAYLOAD"
    assert call("file:x", "/exec echo \0").code == "INVALID_PAYLOAD"


@proves("EXEC-01")
def test_exec_runs_one_command_in_a_fresh_shell(call: Caller) -> None:
    reply = call("file:x", "/exec cat; x=1; echo out; echo err >&2; exit 2")
    assert reply.code == "EXIT_2"
    assert reply.content == f"ERROR(EXIT_2): exit: 2 | cwd: {call.home}\n---\nout\nerr"
    assert call("file:x", "/exec echo x=$x").content == f"exit: 0 | cwd: {call.home}\n---\nx="
    assert call("file:x", "/exec true").content.endswith("---\n(no output)")


@proves("EXEC-02")
def test_exec_without_a_command_is_refused(call: Caller) -> None:
    reply = call("file:x", "/exec")
    assert reply.content == "ERROR(COMMAND_UNSUPPORTED): Usage: /exec <command>"


@proves("EXEC-03")
def test_exec_exports_session_variables(call: Caller) -> None:
    call("file:vars", '/set\n{city} = "Seoul"\n{_hidden} = "no"')
    assert call("file:vars", "/exec echo $city-$_hidden").content.endswith("---\nSeoul-")


@proves("EXEC-04")
def test_exec_is_ended_by_the_time_limit(hasty: Caller) -> None:
    reply = hasty("file:x", "/exec echo partial; sleep 1000")
    assert reply.code == "EXIT_124"
    assert "---\npartial\n[timed out" in reply.content
