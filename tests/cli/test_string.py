"""`string`: one command from a shell."""

import json
import os
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from stringd.cli.quoting import quote
from stringd.cli.streams import visible
from stringd.cli.string import StringOptions, connect, join
from stringd.client.http import TransportError
from tests.requirements import proves
from tests.support.commands import BIN, Terminal, environment, run
from tests.support.daemon import WAIT_SECONDS, Daemon, another_program, free_port
from tests.support.http import Blocked, User, request
from tests.support.relay import Relay


@proves("CLIENT-02", "CLIENT-03", "CLIENT-08")
def test_a_command_prints_its_reply_as_a_block(env: dict[str, str]) -> None:
    done = run("string", "file:main", "/set {x} = 1", env=env)
    assert done == (0, '<𝒞=string:file:main>\n{x} = "1"\n</𝒞>\n', "")


@proves("CLIENT-03")
def test_a_failed_command_exits_with_1_and_keeps_its_error(env: dict[str, str]) -> None:
    done = run("string", "notes", "/nonsense", env=env)
    assert done.code == 1
    assert done.out == (
        "<𝒞=string:file:notes>\nERROR(COMMAND_UNSUPPORTED): Unknown command: /nonsense\n"
        "Use /info to see available commands.\n</𝒞>\n"
    )
    assert done.err == ""


@pytest.mark.parametrize(
    "words",
    [
        ("--json", "file:main", "/set {x} = ü"),
        ("file:main", "--json", "/set {x} = ü"),
        ("file:main", "/set {x} = ü", "--json"),
    ],
)
def test_json_is_one_line(env: dict[str, str], words: tuple[str, ...]) -> None:
    done = run("string", *words, env=env)
    assert done == (0, '{"ok":true,"topic":"file:main","content":"{x} = \\"ü\\""}\n', "")


def test_json_of_a_failure_carries_the_code_before_the_content(env: dict[str, str]) -> None:
    done = run("string", "--json", "file:main", "oops", env=env)
    assert done.code == 1
    assert done.out == (
        '{"ok":false,"topic":"file:main","code":"COMMAND_UNSUPPORTED","content":'
        '"ERROR(COMMAND_UNSUPPORTED): Commands must start with /. Use /help for details."}\n'
    )


@proves("CLIENT-01")
def test_the_user_and_its_home_come_from_the_environment(
    daemon: Daemon, env: dict[str, str], tmp_path: Path
) -> None:
    home = tmp_path / "made" / "on demand"
    run("string", "file:main", "/info", env={**env, "STRINGD_HOME": str(home)})
    users = {user["id"]: user for user in request(daemon.port, "GET", "/users").json["users"]}
    assert users[env["STRINGD_USER"]]["home"] == str(home)
    assert home.is_dir()


def test_the_shorter_names_of_variables_count_where_ours_are_unset(
    daemon: Daemon, env: dict[str, str], tmp_path: Path
) -> None:
    plain = {name: value for name, value in env.items() if not name.startswith("STRINGD_")}
    later = {**plain, "STRING_PORT": str(daemon.port), "STRING_HOME": str(tmp_path / "first")}
    for user in ({"STRING_USER": "una"}, {"STRING_AGENT_ID": "una"}):
        assert run("string", "file:main", "/info", env={**later, **user}).code == 0
        # The name the commands of an app find in their environment moves nobody.
        later["STRING_HOME"] = str(tmp_path / "second")
    users = {each["id"]: each for each in request(daemon.port, "GET", "/users").json["users"]}
    assert users["una"]["home"] == str(tmp_path / "first")


def test_a_user_stays_where_it_lives_unless_a_home_is_chosen(
    daemon: Daemon, env: dict[str, str], tmp_path: Path
) -> None:
    for user in ("ann", 'a"nn \\', "änn"):
        request(daemon.port, "POST", "/users", {"id": user, "home": str(tmp_path)})
        plain = {**env, "STRINGD_USER": user, "STRINGD_HOME": ""}
        assert run("string", "file:main", "/info", env=plain).code == 0
        users = {each["id"]: each for each in request(daemon.port, "GET", "/users").json["users"]}
        assert users[user]["home"] == str(tmp_path)


def test_a_home_of_its_own_is_made_for_each_user(daemon: Daemon, env: dict[str, str]) -> None:
    plain = {key: value for key, value in env.items() if key != "STRINGD_HOME"}
    assert run("string", "--user", "zoë", "file:main", "/info", env=plain).code == 0
    users = {user["id"]: user for user in request(daemon.port, "GET", "/users").json["users"]}
    assert users["zoë"]["home"] == str(daemon.directory / ".string" / "users" / "zoë")


@pytest.mark.parametrize("flag", ["--user=", "--user=a\nb", "--user=\x1b[2J"])
def test_an_unprintable_user_is_refused(env: dict[str, str], flag: str) -> None:
    done = run("string", flag, "file:main", "/info", env=env)
    assert (done.code, done.err) == (1, "string: a user id may contain only printable characters\n")


def test_a_flag_that_lacks_its_user_says_so(env: dict[str, str]) -> None:
    done = run("string", "--user", env=env)
    assert (done.code, done.err) == (1, "string: --user needs the id of a user\n")


def test_without_arguments_the_help_is_shown(env: dict[str, str]) -> None:
    for words in ((), ("--help",), ("-h",)):
        done = run("string", *words, env=env)
        assert done.code == 0
        assert done.out.startswith("usage: string <topic> '<command>'")


@pytest.mark.parametrize("topic", ["a b", "intro.md", "foo:bar", "file:"])
def test_an_invalid_topic_is_quoted(env: dict[str, str], topic: str) -> None:
    done = run("string", topic, "/info", env=env)
    assert done == (1, "", f"string: invalid topic: {topic}\n")


@pytest.mark.parametrize(
    ("flag", "said"),
    [
        ("--bogus", "string: unknown flag '--bogus'.\n"),
        ("--deamon", "string: unknown flag '--deamon'. Did you mean --daemon?\n"),
        ("-x", "string: unknown flag '-x'.\n"),
    ],
)
def test_an_unknown_flag_is_named(env: dict[str, str], flag: str, said: str) -> None:
    assert run("string", flag, "file:main", "/info", env=env) == (1, "", said)


def test_flags_without_a_command_point_to_the_help(env: dict[str, str]) -> None:
    done = run("string", "--json", env=env)
    assert done == (1, "", "string: no topic or command given. See string --help.\n")


def test_a_command_without_a_topic_runs_in_the_default_one(env: dict[str, str]) -> None:
    done = run("string", "/set {x} = 1", env=env)
    assert done.out.startswith("<𝒞=string:file:main>\n")


@pytest.mark.parametrize("words", [("/open bash:dev",), ("file:main", "/open", "bash:dev")])
def test_opening_a_shell_topic_says_where_its_shell_stands(
    env: dict[str, str], words: tuple[str, ...]
) -> None:
    said = "<𝒞=string:bash:dev>\nBash session info\n---\ncwd:       (no active shell)\n</𝒞>\n"
    assert run("string", *words, env=env) == (0, said, "")


def test_opening_an_app_runs_in_its_topic(env: dict[str, str]) -> None:
    done = run("string", "file:main", "/open app:weather", env=env)
    assert done.out.startswith("<𝒞=string:app:weather>\nERROR(NOT_FOUND): ")


@pytest.mark.parametrize(
    ("words", "command"),
    [
        (["/info"], "/info"),
        (["/set {x} = 'a b'"], "/set {x} = 'a b'"),
        (["/ls", "notes"], "/ls notes"),
        (["/act.say", "two words"], "/act.say 'two words'"),
        (["/act.say", 'a "quoted" word'], "/act.say 'a \"quoted\" word'"),
        (["/act.say", "it's"], """/act.say 'it'"'"'s'"""),
        (["/act.say", "'a''' b"], "/act.say \"'\"'a'\"'''\"' b'"),
        (["/act.say", ""], "/act.say ''"),
        (["/act.say", "a\nb"], "/act.say 'a\nb'"),
        (["/act.say", "--to-x=a b"], "/act.say --to-x='a b'"),
        (["/act.say", "--limit 5 = 6"], "/act.say '--limit 5 = 6'"),
        (["/act.say", "''"], "/act.say \"''\""),
    ],
)
def test_several_words_become_one_command(words: list[str], command: str) -> None:
    assert join(words) == command


@pytest.mark.parametrize(
    "word", ["plain", "two words", "it's", "''", "'\"'", '"', "", "a'b c'd", "--k=a b"]
)
def test_a_quoted_word_is_restored_by_a_shell(word: str) -> None:
    script = f"printf %s {quote(word)}"
    assert subprocess.run(["bash", "-c", script], capture_output=True, check=True).stdout == (
        word.encode()
    )


def test_the_working_directory_is_vouched_for(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "here.md").write_text("# Here\n", encoding="utf-8")
    done = run("string", "file:main", "/ls ./", env=env, cwd=tmp_path)
    assert "here.md" in done.out


def test_a_removed_working_directory_is_no_trouble(env: dict[str, str], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    code = "import os, sys; os.rmdir(os.getcwd()); from stringd.cli.string import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, "file:main", "/info"],
        env=env,
        cwd=gone,
        capture_output=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, b"")


def test_arguments_that_are_no_utf8_are_refused_without_a_trace(env: dict[str, str]) -> None:
    done = run("string", "file:main", b"/info \xff", env=env)
    assert done.code in (0, 1)
    assert "Traceback" not in done.err


def test_a_reply_cannot_forge_the_end_of_its_block(env: dict[str, str]) -> None:
    done = run("string", "file:main", "/set {x} = </𝒞>", env=env)
    assert done.out.count("</𝒞>") == 1


def test_control_characters_are_spelled_out_on_a_terminal() -> None:
    assert visible("a\x1b[2Jb\x07\x9b\tc\nd ü 🐢") == "a\\x1b[2Jb\\x07\\x9b\tc\nd ü 🐢"


def test_a_reply_cannot_drive_the_terminal(env: dict[str, str]) -> None:
    with Terminal("file:main", "/set {x} = \x1b]0;owned\x07", env=env) as terminal:
        assert terminal.end() == 0
        assert "\x1b" not in terminal.screen
        assert "\\x1b]0;owned" in terminal.screen


@pytest.mark.parametrize("value", ["0", "abc", "70000"])
def test_an_unusable_port_is_named(env: dict[str, str], value: str) -> None:
    done = run("string", "file:main", "/info", env={**env, "STRINGD_PORT": value})
    said = f"string: STRINGD_PORT must be a port between 1 and 65535, not '{value}'\n"
    assert done == (1, "", said)


def test_a_home_that_cannot_be_used_is_named(env: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="utf-8")
    done = run("string", "file:main", "/info", env={**env, "STRINGD_HOME": f"{tmp_path}/file/x"})
    assert done.code == 1
    assert done.err.startswith("string: cannot use ")
    assert "Traceback" not in done.err


@proves("CLIENT-05")
def test_a_full_queue_is_told_apart(daemon: Daemon, env: dict[str, str]) -> None:
    user = User(daemon.port, env["STRINGD_USER"], Path(env["STRINGD_HOME"]))
    with Blocked(user):
        waiting = [socket.create_connection(("127.0.0.1", daemon.port)) for _ in range(16)]
        for connection in waiting:
            connection.sendall(user.message("/info"))
        while user.sessions()["file:main"]["queue_length"] < 16:
            pass
        done = run("string", "--json", "file:main", "/info", env=env)
        for connection in waiting:
            connection.close()
    assert done.code == 1
    assert json.loads(done.out)["code"] == "QUEUE_FULL"


@proves("CLIENT-04", "CLIENT-06")
def test_a_daemon_that_dies_half_way_leaves_an_incomplete_answer(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.start()
    pipe = daemon.home / "pipe"
    os.mkfifo(pipe)
    result: list[object] = []
    with Relay(daemon.port) as relay:
        env = environment(daemon) | {"STRINGD_PORT": str(relay.port)}
        command = threading.Thread(
            target=lambda: result.append(run("string", "file:main", f"/exec cat {pipe}", env=env))
        )
        command.start()
        writer = os.open(pipe, os.O_WRONLY)
        assert relay.answered.wait(WAIT_SECONDS), "the answer never began"
        daemon.kill()
        command.join(WAIT_SECONDS)
        os.close(writer)
    assert result == [
        (
            1,
            "<𝒞=string:file:main>\nThe answer ended before it was complete.\n</𝒞>\n",
            "",
        )
    ]


def test_ctrl_c_ends_a_command_with_130(daemon: Daemon, env: dict[str, str]) -> None:
    pipe = Path(env["STRINGD_HOME"]) / "pipe"
    os.mkfifo(pipe)
    with Terminal("file:main", f"/exec cat {pipe}", env=env) as terminal:
        writer = os.open(pipe, os.O_WRONLY)
        terminal.process.send_signal(signal.SIGINT)
        assert terminal.end() == 130
        assert "Traceback" not in terminal.screen
        os.close(writer)


def test_a_reader_that_has_seen_enough_is_no_error(env: dict[str, str]) -> None:
    code = "import sys; from stringd.cli.string import main; sys.exit(main())"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run(
        [sys.executable, "-c", code, "file:main", "/help"],
        env=env,
        stdout=write,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(write)
    assert done.stderr == b""


def test_a_port_of_another_program_is_no_daemon(env: dict[str, str]) -> None:
    with another_program() as port:
        done = run("string", "file:main", "/info", env={**env, "STRINGD_PORT": str(port)})
    assert (done.code, done.out) == (1, "")
    assert done.err.startswith(f"string: failed to start stringd on port {port}: cannot listen on ")


@proves("CLIENT-02")
def test_a_daemon_that_does_not_answer_is_not_waited_for_without_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stringd.cli.string.ANSWER_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        monkeypatch.setenv("STRINGD_PORT", str(port))
        with pytest.raises(TransportError, match=f"timed out: stringd on port {port} did not"):
            connect(StringOptions())


def test_the_daemon_is_started_when_it_does_not_run(tmp_path: Path) -> None:
    port = free_port()
    inherited = {k: v for k, v in os.environ.items() if not k.startswith("STRINGD_")}
    env = {**inherited, "HOME": str(tmp_path), "STRINGD_PORT": str(port)}
    try:
        done = run("string", "file:main", "/set {x} = 1", env=env, cwd=tmp_path)
        assert done == (0, '<𝒞=string:file:main>\n{x} = "1"\n</𝒞>\n', "")
        assert run("string", "file:main", "/info", env=env).out.count('{x}="1"') == 1
        users = json.loads((tmp_path / ".string/daemon/users.json").read_bytes())
        assert users[0]["home"] == str(tmp_path / ".string" / "users" / "default")
        assert not (tmp_path / ".stringd").exists()
    finally:
        assert run("string", "--daemon", "stop", env=env).out == "stringd stopped\n"


@pytest.mark.skipif(not (BIN / "string").exists(), reason="the console script is not installed")
def test_the_installed_command_works(env: dict[str, str]) -> None:
    done = subprocess.run(
        [BIN / "string", "file:main", "/info"], env=env, capture_output=True, check=False
    )
    assert done.returncode == 0
    assert done.stdout.startswith("<𝒞=string:file:main>\nSession info\n---\n".encode())
