"""Commands whose standard streams are closed, or cannot say everything."""

import subprocess
import sys

import pytest

from stringd.cli.streams import unmistakable, visible
from tests.support.daemon import WAIT_SECONDS

STRING = f"{sys.executable} -c 'import sys; from stringd.cli.string import main; sys.exit(main())'"
STRINGD = f"{sys.executable} -m stringd"


def shell(line: str, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", line],
        env=env,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        f"{STRING} file:main /info >&-",
        f"{STRING} file:main /info <&- 2>&-",
        f"{STRING} file:main <&-",
        f"{STRING} --daemon status >&-",
        f"{STRINGD} status >&- 2>&-",
        f"{STRINGD} --help >&-",
    ],
)
def test_a_closed_stream_is_no_trouble(env: dict[str, str], line: str) -> None:
    done = shell(line, env)
    assert (done.returncode, done.stderr) == (0, "")


def test_text_an_encoding_does_not_have_is_spelled_out(env: dict[str, str]) -> None:
    for command in (f"{STRING} --daemon status", f"{STRINGD} status"):
        done = shell(command, {**env, "PYTHONIOENCODING": "latin-1"})
        assert done.returncode == 0
        assert "\\u2014" in done.stdout


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("rm \u202egpj.x\u202c", "rm \\u{202e}gpj.x\\u{202c}"),
        ("a\u2066b\u200fc", "a\\u{2066}b\\u{200f}c"),
        ("\x1b[2J\x9b1A", "\\x1b[2J\\x9b1A"),
        ("two\nlines\t\U0001f468\u200d\U0001f469", "two\nlines\t\U0001f468\u200d\U0001f469"),
    ],
)
def test_no_text_drives_a_terminal_or_turns_its_direction(text: str, shown: str) -> None:
    assert visible(text) == shown


def test_what_somebody_decides_about_has_nothing_unseen() -> None:
    told = unmistakable("a\nb\u200bc\u2028d\u00a0e\u3164")
    assert told.startswith("a\\nb\\u{200b}c\\u{2028}d\\xa0e")
