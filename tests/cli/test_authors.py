"""`stringd new` and `stringd dev`: from nothing to an app, and an eye on it meanwhile."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.commands import run
from tests.support.daemon import WAIT_SECONDS


def test_a_new_app_is_valid_installs_and_answers(env: dict[str, str], tmp_path: Path) -> None:
    made = run("stringd", "new", "app", "my-app", env=env, cwd=tmp_path)
    assert made.code == 0
    assert made.out.startswith("Made my-app: string.md, README.md\nNext: stringd dev my-app\n")
    assert run("stringd", "sfmd", "validate", "my-app", env=env, cwd=tmp_path).out == ""
    installed = run("string", "/install ./my-app", env=env, cwd=tmp_path)
    assert "Installed app:my-app" in installed.out
    answer = run("string", "app:my-app", "/act.hello Ada", env=env, cwd=tmp_path)
    assert "Hello, Ada!" in answer.out
    assert "app:my-app 0.1.0 — Says hello." in run("string", "/apps", env=env).out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("app", "taken"), "stringd new: taken is not empty; choose another name"),
        (("app", "../out"), "stringd new: a name has letters, digits, - and _: ../out"),
        (("app", "x", "--in", "taken/file"), "stringd new: taken/file/x: Not a directory"),
    ],
)
def test_a_new_app_takes_nobodys_place(
    env: dict[str, str], tmp_path: Path, arguments: tuple[str, ...], said: str
) -> None:
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "file").write_text("mine", "utf-8")
    refused = run("stringd", "new", *arguments, env=env, cwd=tmp_path)
    assert (refused.code, refused.err.strip()) == (1, said)
    assert [path.name for path in tmp_path.rglob("*")] == ["taken", "file"]


class Dev:
    """`stringd dev` at work, read line by line."""

    def __init__(self, env: dict[str, str], place: Path, *arguments: str) -> None:
        self._child = subprocess.Popen(
            [sys.executable, "-m", "stringd", "dev", *arguments],
            env=env,
            cwd=place,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def until(self, text: str) -> str:
        """What it prints up to a line that has this."""
        assert self._child.stdout is not None
        lines = []
        for line in self._child.stdout:
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError(f"it ended without {text!r}: {''.join(lines)}")

    def end(self, number: signal.Signals = signal.SIGINT) -> tuple[int, str]:
        os.kill(self._child.pid, number)
        rest, _ = self._child.communicate(timeout=WAIT_SECONDS)
        return self._child.returncode, rest


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_app_is_shown_again_whenever_it_changes(
    env: dict[str, str], tmp_path: Path, number: signal.Signals
) -> None:
    run("stringd", "new", "app", "seen", env=env, cwd=tmp_path)
    page = tmp_path / "seen" / "string.md"
    dev = Dev(env, tmp_path, "seen")
    first = dev.until("in the app's own topic.")
    assert "# Seen" in first
    assert "Nothing is wrong with it." in first
    page.write_text(page.read_text("utf-8") + "\n[!nav:top](gone.md)\n", "utf-8")
    second = dev.until("1 problem, listed above.")
    assert " changed: string.md\nproblem: string.md: MISSING_MENU: " in second
    (tmp_path / "seen" / "gone.md").write_text("[@top Top](string.md)\n", "utf-8")
    assert " changed: gone.md\n" in dev.until("Nothing is wrong with it.")
    assert dev.end(number) == (0, "\nstringd dev: ended\n")
    assert "file:dev-seen" not in run("string", "/topics", env=env).out


def test_an_app_is_installed_whenever_nothing_is_wrong(env: dict[str, str], tmp_path: Path) -> None:
    run("stringd", "new", "app", "kept", env=env, cwd=tmp_path)
    page = tmp_path / "kept" / "string.md"
    dev = Dev(env, tmp_path, "kept", "--install")
    dev.until("Watching ")
    page.write_text(page.read_text("utf-8").replace("Hello", "Hi"), "utf-8")
    dev.until("Installed app:kept")
    dev.until("Use: ")
    assert "Hi, Ada!" in run("string", "app:kept", "/act.hello Ada", env=env).out
    assert dev.end()[0] == 0


def test_one_look_says_by_its_status_whether_all_is_well(
    env: dict[str, str], tmp_path: Path
) -> None:
    page = tmp_path / "one page.md"
    page.write_text("# One\n", "utf-8")
    well = run("stringd", "dev", "--once", "one page.md", env=env, cwd=tmp_path)
    assert (well.code, "Nothing is wrong with it." in well.out) == (0, True)
    page.write_text("```act.x\nCLI echo {nobody}\n  x: string\n```\n", "utf-8")
    ill = run("stringd", "dev", "--once", "one page.md", env=env, cwd=tmp_path)
    assert (ill.code, "UNKNOWN_FIELD" in ill.out) == (1, True)
    gone = run("stringd", "dev", env=env, cwd=tmp_path)
    assert gone.code == 1
    assert "stringd new app NAME makes one" in gone.err
