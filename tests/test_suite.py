"""`make test` fails for what is broken, and names what is only unsteady."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support import suite

ROOT = Path(__file__).parents[1]
SUITE = """
from pathlib import Path

def test_that_is_broken():
    assert {works}

def test_that_is_unsteady():
    tried = Path(__file__).with_suffix(".tried")
    before = tried.exists()
    tried.touch()
    assert before

def test_that_passes():
    pass
"""


@pytest.mark.parametrize(("works", "code", "named"), [(True, 0, "UNSTEADY"), (False, 1, "TWICE")])
def test_a_failing_test_gets_one_more_chance_by_itself(
    tmp_path: Path, works: bool, code: int, named: str
) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]", encoding="utf-8")
    (tmp_path / "test_sample.py").write_text(SUITE.format(works=works), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", suite.__name__, "-n", "2"],
        check=False,
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert done.returncode == code, done.stdout
    assert "UNSTEADY" in done.stdout
    assert named in done.stdout
    assert "test_that_passes" not in done.stdout.partition("Once more")[2]
