"""Strategies are found from the working directory outwards, and broken ones are told."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from stringd.runs import offer_of
from stringd.runs.errors import StrategyFileError
from stringd.runs.strategy.discover import discover, find
from stringd.runs.strategy.files import StrategyFiles
from stringd.runs.strategy.project import check_permissions, read_manifest
from stringd.system.trust import TrustStore
from tests.runs.support import sequential, strategy


def write(path: Path, name: str, **agent: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    source = {**strategy(sequential("a"), a={"model": "demo/echo", **agent}), "name": name}
    path.write_text(yaml.safe_dump(source), "utf-8")
    return path


def manifest(folder: Path, file: str = "stringd-project.json", **extra: Any) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / file
    path.write_text(json.dumps({"name": "@me/proj", "version": "1.0.0", **extra}), "utf-8")
    return path


def test_sources_are_listed_in_order_of_nearness(tmp_path: Path) -> None:
    cwd, data = tmp_path / "cwd", tmp_path / "data"
    write(cwd / ".stringd" / "strategies" / "one.yaml", "one")
    write(cwd / ".comma" / "strategies" / "two.yml", "two")
    write(data / "strategies" / "three.yaml", "three")
    write(cwd / ".comma" / "shown.yaml", "shown")
    write(cwd / ".comma" / "hidden.yaml", "hidden")
    manifest(
        cwd / ".comma",
        "comma-project.json",
        strategies={
            "shown": {"path": "shown.yaml", "expose": True},
            "hidden": {"path": "hidden.yaml"},
        },
    )
    trust = TrustStore(tmp_path / "trust.json")
    offer_of(cwd, trust).accept(trust)
    found = discover(cwd, data, StrategyFiles(data, trust))
    listed = [(each.label, each.origin) for each in found.strategies]
    assert listed[:5] == [
        ("one", "cwd"),
        ("two", "cwd"),
        ("@me/proj > shown", "cwd-root-project"),
        ("three", "data"),
        ("hello", "bundled"),
    ]
    assert {origin for _, origin in listed[5:]} == {"bundled"}
    assert found.warnings == []


def test_broken_files_become_warnings(tmp_path: Path) -> None:
    folder = tmp_path / ".stringd" / "strategies"
    folder.mkdir(parents=True)
    (folder / "a.yaml").write_text("a: [", "utf-8")
    (folder / "b.yaml").write_text("name: x", "utf-8")
    (folder / "notes.txt").write_text("not one", "utf-8")
    manifest(folder / "p", strategies=[])
    reasons = [each.reason for each in discover(tmp_path, tmp_path / "data").warnings]
    assert reasons[0].startswith("Parse error: Failed to parse strategy YAML")
    assert reasons[1] == "Schema invalid (version: Required)"
    assert reasons[2].startswith("Manifest invalid (")


def test_unexposed_strategies_of_packages_are_reached_by_reference(tmp_path: Path) -> None:
    project = tmp_path / "packages" / "@me" / "proj"
    inner = write(project / "inner.yaml", "inner")
    manifest(project, strategies={"deep": {"path": "inner.yaml"}})
    assert find("@me/proj/strategies/deep", Path("/"), tmp_path) == inner.resolve()
    elsewhere = tmp_path / "elsewhere"
    write(elsewhere / "inner.yaml", "inner")
    manifest(elsewhere, strategies={"deep": {"path": "inner.yaml"}})
    outside = [f"@me/{elsewhere}/strategies/deep", "@me/../../elsewhere/strategies/deep"]
    for wrong in ("@me/proj/strategies/none", "@me/../strategies/x", "@me/proj", *outside):
        with pytest.raises(StrategyFileError, match="Strategy file not found: @"):
            find(wrong, Path("/"), tmp_path)


@pytest.mark.parametrize(
    ("extra", "told"),
    [
        ({"name": "Proj"}, "name: Expected @scope/project"),
        ({"version": "one"}, "version: Expected a version"),
        ({"agents": ["a"]}, "agents: Expected object, received array"),
        ({"colour": "red"}, "Unrecognized key(s) in object: 'colour'"),
        ({"environment": {"lower": {}}}, "Names are UPPER_SNAKE"),
        ({"strategies": {"x": {"path": "../out.yaml"}}}, "leaves the project"),
        ({"strategies": {"x": {"path": "/etc/passwd"}}}, "leaves the project"),
        ({"strategies": {"x": {"path": "none.yaml"}}}, "does not exist in the project"),
        ({"entry": "code.py"}, "set permissions.executesCode to true"),
        ({"entry": "code.ts"}, "is not a Python module"),
    ],
)
def test_manifests_that_are_wrong_are_refused(
    tmp_path: Path, extra: dict[str, Any], told: str
) -> None:
    for name in ("code.py", "code.ts"):
        (tmp_path / name).write_text("", "utf-8")
    with pytest.raises(StrategyFileError) as caught:
        read_manifest(manifest(tmp_path, **extra))
    assert told in str(caught.value)


def test_a_symlink_does_not_lead_out_of_the_project(tmp_path: Path) -> None:
    outside = write(tmp_path / "outside.yaml", "outside")
    project = tmp_path / "project"
    path = manifest(project, strategies={"x": {"path": "link.yaml"}})
    (project / "link.yaml").symlink_to(outside)
    with pytest.raises(StrategyFileError, match="leaves the project"):
        read_manifest(path)


def test_tools_need_the_permission_they_use(tmp_path: Path) -> None:
    write(tmp_path / "s.yaml", "s", tools=["run_command"])
    path = manifest(tmp_path, strategies={"s": {"path": "s.yaml"}})
    with pytest.raises(StrategyFileError, match=r"set permissions\.shell to true"):
        check_permissions(read_manifest(path))
