"""The README's first commands answer what the README says."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from tests.support.commands import environment, run
from tests.support.daemon import WAIT_SECONDS, Daemon

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")
STRING = (
    "string() { "
    f"{sys.executable} -c 'import sys; from stringd.cli.string import main; sys.exit(main())' "
    '"$@"; }'
)


def examples() -> list[tuple[str, str]]:
    """Commands and what the README shows below each."""
    _, _, chapter = README.partition("## First commands\n")
    chapter, _, _ = chapter.partition("\n## Where next\n")
    blocks = re.findall(r"^```\n(.*?)^```$", chapter, re.DOTALL | re.MULTILINE)
    steps = "\n".join(blocks).split("\n$ ")
    steps[0] = steps[0].removeprefix("$ ")
    return [_parted(step) for step in steps]


def _parted(step: str) -> tuple[str, str]:
    lines = step.split("\n")
    last = next(number for number, line in enumerate(lines) if not line.endswith("\\"))
    return "\n".join(lines[: last + 1]), "\n".join(lines[last + 1 :])


def test_the_first_commands_answer_as_shown(tmp_path: Path) -> None:
    assert len(examples()) >= 5
    with Daemon(tmp_path, "--welcome") as daemon:
        env = environment(daemon)
        del env["STRINGD_HOME"]
        for command, shown in examples():
            if shutil.which("curl") is None and command.startswith("curl"):
                continue
            here = command.replace("127.0.0.1:3100", f"127.0.0.1:{daemon.port}")
            done = subprocess.run(
                ["bash", "-c", f"{STRING}\n{here}"],
                env=env,
                cwd=tmp_path,
                capture_output=True,
                text=True,
                timeout=WAIT_SECONDS,
                check=False,
            )
            assert done.stdout.rstrip("\n") == shown.rstrip("\n"), command


def test_the_lines_for_coding_agents_are_the_same_everywhere() -> None:
    _, _, chapter = README.partition("## For coding agents\n")
    rows = re.findall(r"^\| .*`.*$", chapter.partition("\n## ")[0], re.MULTILINE)
    page = (Path(__file__).parents[1] / "docs" / "mcp.md").read_text(encoding="utf-8")
    help_text = run("stringd", "mcp", "--help", env=os.environ).out
    assert len(rows) == 5
    for row in rows:
        assert row in page
        assert re.findall(r"`([^`]+)`", row)[-1] in help_text
