"""`string <topic>`: many commands, piped or typed on a terminal that can only print."""

from pathlib import Path

from tests.requirements import proves
from tests.support.commands import Terminal, environment, run
from tests.support.daemon import Daemon


@proves("CLIENT-09")
def test_piped_commands_are_answered_one_by_one_without_a_prompt(env: dict[str, str]) -> None:
    typed = b"/set {x} = 1\n\n   \n/nonsense\n  /set {y} = 2  \n"
    done = run("string", "file:main", env=env, stdin=typed)
    said = (
        '<𝒞=string:file:main>\n{x} = "1"\n</𝒞>\n'
        "<𝒞=string:file:main>\nERROR(COMMAND_UNSUPPORTED): Unknown command: /nonsense\n"
        "Use /info to see available commands.\n</𝒞>\n"
        '<𝒞=string:file:main>\n{y} = "2"\n</𝒞>\n'
    )
    assert done == (0, said, "")


def test_exit_and_quit_end_the_session(env: dict[str, str]) -> None:
    for word in (b"/exit", b" /quit "):
        done = run("string", "file:main", env=env, stdin=word + b"\n/set {x} = 1\n")
        assert done == (0, "", "")


def test_a_last_line_without_its_newline_counts(env: dict[str, str]) -> None:
    assert '{x} = "1"' in run("string", "file:main", env=env, stdin=b"/set {x} = 1").out


def test_json_answers_line_by_line(env: dict[str, str]) -> None:
    done = run("string", "--json", "file:main", env=env, stdin=b"/set {x} = 1\n/set {x} = 2\n")
    assert done.out == (
        '{"ok":true,"topic":"file:main","content":"{x} = \\"1\\""}\n'
        '{"ok":true,"topic":"file:main","content":"{x} = \\"2\\""}\n'
    )


def test_input_that_is_no_utf8_is_read_all_the_same(env: dict[str, str]) -> None:
    done = run("string", "file:main", env=env, stdin=b"/set {x} = \xff\n")
    assert (done.code, done.err) == (0, "")
    assert '{x} = "\N{REPLACEMENT CHARACTER}"' in done.out


@proves("CLIENT-06", "CLIENT-09")
def test_a_daemon_that_went_away_does_not_end_the_session(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    daemon.start()
    with Terminal("file:main", env=environment(daemon, TERM="dumb")) as terminal:
        terminal.until("[file:main] > ")
        terminal.type("/set {x} = 1\r")
        terminal.until("</𝒞>")
        terminal.until("[file:main] > ")
        daemon.kill()
        terminal.type("/info\r")
        terminal.until(f"string: cannot reach stringd on port {daemon.port}: Connection refused")
        terminal.until("[file:main] > ")
        daemon.start()
        terminal.type("/set {x} = 2\r")
        terminal.until('{x} = "2"')
        terminal.type("/exit\r")
        assert terminal.end() == 0
    daemon.stop()


def test_on_a_terminal_every_line_has_a_prompt_and_the_end_says_bye(env: dict[str, str]) -> None:
    with Terminal("notes", env=env | {"TERM": "dumb"}) as terminal:
        for number in range(3):
            terminal.until("[file:notes] > ")
            terminal.type(f"/set {{x}} = {number}\r")
            terminal.until(f'{{x}} = "{number}"')
        terminal.until("[file:notes] > ")
        terminal.type("\x04")
        assert terminal.end() == 0
        assert terminal.screen.replace("\r", "").endswith("\nBye.\n")


def test_ctrl_c_ends_the_session(env: dict[str, str]) -> None:
    with Terminal("file:main", env=env | {"TERM": "dumb"}) as terminal:
        terminal.until("[file:main] > ")
        terminal.type("\x03")
        assert terminal.end() == 0
        assert terminal.screen.replace("\r", "").endswith("\nBye.\n")


def test_redirected_replies_hold_no_prompt(env: dict[str, str], tmp_path: Path) -> None:
    path = tmp_path / "replies.txt"
    dumb = env | {"TERM": "dumb"}
    with open(path, "wb") as replies, Terminal("file:main", env=dumb, stdout=replies) as terminal:
        terminal.until("[file:main] > ")
        terminal.type("/set {x} = 1\r")
        terminal.until("[file:main] > ")
        terminal.type("/exit\r")
        assert terminal.end() == 0
    expected = '<𝒞=string:file:main>\n{x} = "1"\n</𝒞>\n'
    assert path.read_text(encoding="utf-8") == expected
