"""The picture in the README can be taken again, and shows what it should."""

import re
import shutil
import subprocess
import sys
from html import unescape
from pathlib import Path

import pytest

from tests.support.daemon import WAIT_SECONDS

DOCS = Path(__file__).parents[1] / "docs"


def words(picture: Path) -> str:
    """The text of a picture."""
    found = re.findall(r"<text[^>]*>([^<]*)</text>", picture.read_text(encoding="utf-8"))
    return unescape("\n".join(found))


@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_the_picture_is_of_the_real_thing(tmp_path: Path) -> None:
    taken = tmp_path / "picture.svg"
    subprocess.run(
        [sys.executable, DOCS / "picture.py", taken], check=True, timeout=WAIT_SECONDS * 3
    )
    shown = words(taken)
    assert "Execute as root? [y/N]" in shown
    assert "Opened plan.md" in shown
    assert "238 in · 66 out" in shown


def test_the_picture_we_show_tells_nothing_about_whose_machine_it_was() -> None:
    shown = words(DOCS / "picture.svg")
    assert "Execute as root? [y/N]" in shown
    assert not re.search(r"/(?:home|root|Users)/", shown)
