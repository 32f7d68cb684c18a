"""Whatever a shell runs of a line was found in it, or the line was in doubt."""

import re
import subprocess
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from stringd.formats.shell.grammar import MAX_LINE
from stringd.formats.shell.parse import Reading
from stringd.formats.shell.words import HOME, UNKNOWN, Word
from stringd.formats.shell.wrappers import read_through
from tests.support.daemon import WAIT_SECONDS

BASH = Path("/bin/bash")
pytestmark = pytest.mark.skipif(not BASH.exists(), reason="bash is not installed")

# Writes down how it was called; the only programs a generated line can reach are copies of it.
# In one write, since two of them may run at once.
PROGRAM = """#!/bin/sh
call=$(printf '%s\\036' "${0##*/}" "$@")
printf '%s\\035' "$call" >> "$CALLS"
"""
HOME_FOLDER = "/home/somebody"
WRAPPERS = ("env", "nohup", "timeout", "nice", "setsid", "xargs", "stdbuf", "sh", "bash")


@dataclass
class Shell:
    """A real shell in an empty folder, and what it was seen to run."""

    folder: Path

    def run(self, line: str) -> list[list[str]]:
        # What one line leaves running must not write into the record of the next.
        calls = self.folder / f"calls-{uuid4().hex}"
        environment = {
            "PATH": str(self.folder / "bin"),
            "CALLS": str(calls),
            "HOME": HOME_FOLDER,
        }
        subprocess.run(
            [BASH, "-c", line],
            cwd=self.folder / "work",
            env=environment,
            stdin=subprocess.DEVNULL,
            # Read to its end, which is when the last job in the background has ended too.
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=WAIT_SECONDS,
            check=False,
        )
        text = calls.read_bytes().decode("utf-8", "replace") if calls.exists() else ""
        calls.unlink(missing_ok=True)
        return [call.split("\x1e")[:-1] for call in text.split("\x1d")[:-1]]


@pytest.fixture(scope="module")
def shell(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    folder = tmp_path_factory.mktemp("shell")
    (folder / "bin").mkdir()
    (folder / "work").mkdir()
    for name in ("p", "q", "r"):
        (folder / "bin" / name).write_text(PROGRAM, "utf-8")
        (folder / "bin" / name).chmod(0o755)
    for name in WRAPPERS:
        for place in ("/usr/bin", "/bin"):
            if Path(place, name).exists() and not (folder / "bin" / name).exists():
                (folder / "bin" / name).symlink_to(Path(place, name))
    return Shell(folder)


def fits(word: Word, text: str) -> bool:
    """Whether a word as it was read can have become this text."""
    if not word.plain:
        return True
    marks = {UNKNOWN: ".*", HOME: re.escape(HOME_FOLDER)}
    pattern = "".join(marks.get(part) or re.escape(part) for part in word.text)
    return re.fullmatch(pattern, text, re.DOTALL) is not None


def seen(call: list[str], reading: Reading) -> bool:
    """Whether a call is one of those that were read; an unknown may be any number of words."""
    for stage in reading.stages:
        if stage.name != call[0]:
            continue
        if not all(word.known for word in stage.words):
            return True
        # The reader drops the lone dash of `p - <<E`; it changes nothing of what is judged.
        words = [word for word in stage.words[1:] if word.text != "-"]
        given = [text for text in call[1:] if text != "-"]
        if len(words) == len(given) and all(map(fits, words, given)):
            return True
    return False


def check(shell: Shell, line: str) -> None:
    # Without functions no line can call itself for ever.
    assume(not re.search(r"\(\s*\)", line))
    reading = read_through(line)
    if reading.doubts:
        return
    for call in shell.run(line):
        assert seen(call, reading), (line, call, [stage.text for stage in reading.stages])


TOKENS = st.sampled_from(
    [
        *("p", "q", "r", "a", "b", "-", "--", "-x", "x=1", "$x", '"$x"', "${x:-p}", "$(p)", "`q`"),
        *("|", "||", "&", "&&", ";", "\n", "(", ")", "{", "}", "!", "#", "$", "\\", "'", '"', " "),
        *("<", ">", ">>", "<<", "<<<", "<(", ">(", "2>&1", ">&2", "&>", "if", "then", "fi", "for"),
        *("in", "do", "done", "case", "esac", "[[", "]]", "[", "]", "$((", "))", "*", "?", "~"),
        *(
            "$'p'",
            '$"q"',
            "\\\n",
            "\t",
            "=",
            "==",
            "1",
            "@",
            "%",
            ",",
            "{p,q}",
            "E",
            "<<E\n",
            "\nE\n",
        ),
        *(
            "env",
            "env -i",
            "env -u x",
            "nohup",
            "timeout 5",
            "nice -n 1",
            "exec",
            "command",
            "eval",
        ),
        *("sh -c", "bash -c", "xargs", "time", "builtin", "trap", "'p q'", '"q r"', "'q;r'"),
    ]
)
LINES = st.lists(st.tuples(TOKENS, st.sampled_from([" ", " ", ""])), min_size=1, max_size=14).map(
    lambda parts: "".join(token + gap for token, gap in parts)
)
quick = settings(
    max_examples=120,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much],
)


@quick
@given(line=LINES)
def test_what_bash_runs_was_read_or_in_doubt(shell: Shell, line: str) -> None:
    check(shell, line)


@pytest.mark.soak
@settings(quick, max_examples=20_000)
@given(line=LINES)
def test_what_bash_runs_was_read_or_in_doubt_for_long(shell: Shell, line: str) -> None:
    check(shell, line)


@settings(max_examples=300, deadline=None)
@given(line=st.one_of(st.text(max_size=200), st.lists(st.one_of(TOKENS, st.text())).map("".join)))
def test_no_text_breaks_the_reader(line: str) -> None:
    read_through(line)


# The scanner of the grammar crashed on these, and a model may write anything.
@pytest.mark.parametrize("line", ["{\U00031860", "<\\${\U0010ffff'", "${\U0001f600", "{" * 5000])
def test_characters_beyond_its_tables_never_reach_the_parser(line: str) -> None:
    read_through(line * 20)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("$(" * 100 + ")" * 100, "nested too deeply"),
        ("x" * (MAX_LINE + 1), "too long"),
        ("echo a\rrm", "hide what it runs"),
        ("r\\\nm x", "hide what it runs"),
        ("cat <<\u00e9\nx\n\u00fc\nrm\n\u00e9", "cannot be read"),
        ("sudo --new-option rm x", "is not clear"),
        ("$EDITOR x", "known only when it runs"),
        ("eval $x", "is not clear"),
        ("cat x | sh", "is not clear"),
        ("echo 'open", "cannot be read"),
    ],
)
def test_what_cannot_be_read_is_in_doubt(line: str, why: str) -> None:
    assert any(why in doubt for doubt in read_through(line).doubts)


@pytest.mark.parametrize(
    ("line", "commands"),
    [
        ("a | b && c || d; e & f", "a b c d e f"),
        ("(a); { b; }; if c; then d; fi; while e; do f; done", "a b c d e f"),
        ('a $(b `c`) <(d) "$(e)" > $(f)', "a b c d e f"),
        ("X=1 Y=$(a) b", "a b"),
        ("sudo -u me -- env -i A=1 nice -n 5 timeout -k 1 9 a", "sudo env nice timeout a"),
        ("nohup bash -euo pipefail -c 'a | b'", "nohup bash a b"),
        ("find . -name x -exec a {} + -exec b \\;", "find a b"),
        ("x | xargs -0 -n 1 a", "x xargs a"),
        ("bash <<'E'\na\nb | c\nE", "bash a b c"),
        ("a() { b; }; a", "a b"),
        ("trap 'a' EXIT; eval b; command -v c", "trap a eval b command"),
        ("case x in a) b;; esac; [[ $(c) ]]; export A=$(d)", "b c d"),
        ("echo 'a; b' \"c | d\" # e", "echo"),
        ("héllo ünïcode", "héllo"),
    ],
)
def test_every_command_of_a_line_is_found(line: str, commands: str) -> None:
    reading = read_through(line)
    assert reading.doubts == []
    assert sorted({stage.name for stage in reading.stages}) == sorted(commands.split())
