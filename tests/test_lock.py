"""The lock file: plain versions of everything pyproject.toml asks for, and nothing of a machine."""

import re
import tomllib
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
LINE = re.compile(r"([A-Za-z0-9._-]+)==([A-Za-z0-9._+!-]+)")


def locked() -> dict[str, str]:
    lines = (ROOT / "requirements.lock").read_text("utf-8").splitlines()
    found = [LINE.fullmatch(line) for line in lines if not line.startswith("#")]
    assert all(found), "the lock holds something else than name==version"
    return {canonicalize_name(match[1]): match[2] for match in found if match}


def asked_for() -> list[Requirement]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    extras = project["optional-dependencies"].values()
    lines = [*project["dependencies"], *(line for extra in extras for line in extra)]
    return [each for each in map(Requirement, lines) if each.name != "stringd"]


def test_every_dependency_is_locked_at_a_version_that_is_allowed() -> None:
    versions = locked()
    wrong = [
        f"{each}: locked at {versions.get(canonicalize_name(each.name))}"
        for each in asked_for()
        if not each.specifier.contains(versions.get(canonicalize_name(each.name), "0"))
    ]
    assert wrong == [], "run `make lock`"
