"""`stringd strategies` as a person or a script meets it."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.runs.support import scripted, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon


def stringd(daemon: Daemon, *args: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "stringd", *args],
        env={**daemon.child_environment(), "COLUMNS": "70"},
        cwd=cwd,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


@pytest.fixture
def package(tmp_path: Path) -> Path:
    folder = tmp_path / "pack"
    folder.mkdir()
    said = {**strategy(sequential("a"), a=scripted("from a package")), "name": "Packed"}
    said["description"] = "A description that is much too long for one line. " * 3
    (folder / "say.yaml").write_text(yaml.safe_dump(said), "utf-8")
    manifest = {
        "name": "@cli/pack",
        "version": "1.0.0",
        "strategies": {"say": {"path": "say.yaml", "expose": True}},
    }
    (folder / "stringd-project.json").write_text(json.dumps(manifest), "utf-8")
    return folder


def test_a_package_is_installed_run_and_removed(daemon: Daemon, package: Path) -> None:
    here = package.parent
    done = stringd(daemon, "strategies", "install", "pack", cwd=here)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("installed @cli/pack 1.0.0 in ")
    listed = stringd(daemon, "strategies", "packages", "--json", cwd=here)
    assert [each["name"] for each in json.loads(listed.stdout)] == ["@cli/pack"]
    offered = stringd(daemon, "strategies", cwd=here).stdout
    described = [line for line in offered.splitlines() if "much too long" in line]
    assert len(described) == 3
    assert all(len(line) < 70 for line in described)
    for name in ("Packed", "@cli/pack/strategies/say"):
        assert "from a package" in stringd(daemon, "run", name, "-i", "x", cwd=here).stdout
    again = stringd(daemon, "strategies", "install", "pack", cwd=here)
    assert again.returncode == 1
    assert "stringd strategies update @cli/pack" in again.stderr
    for status, told in ((0, "removed @cli/pack\n"), (1, "")):
        removed = stringd(daemon, "strategies", "remove", "@cli/pack", cwd=here)
        assert (removed.returncode, removed.stdout) == (status, told)


def test_check_takes_the_manifest_of_a_project(daemon: Daemon, package: Path) -> None:
    source = strategy(sequential("a"), a={"type": "shout"})
    (package / "say.yaml").write_text(yaml.safe_dump(source), "utf-8")
    code = "def register(registry):\n    registry.agent('shout', None)\n"
    (package / "entry.py").write_text(code, "utf-8")
    manifest = package / "stringd-project.json"
    body = {**json.loads(manifest.read_text()), "entry": "entry.py"}
    body["permissions"] = {"executesCode": True}
    manifest.write_text(json.dumps(body), "utf-8")
    check = ("strategies", "check", "say.yaml")
    assert 'unknown agent type "shout"' in stringd(daemon, *check, cwd=package).stdout
    with_manifest = (*check, "--manifest", "stringd-project.json")
    refused = stringd(daemon, *with_manifest, cwd=package)
    assert (refused.returncode, "is not trusted" in refused.stdout) == (1, True)
    for name in ("stringd-project.json", "entry.py"):
        assert stringd(daemon, "trust", name, cwd=package).returncode == 0
    assert stringd(daemon, *with_manifest, cwd=package).stdout == "say.yaml: ok\n"
