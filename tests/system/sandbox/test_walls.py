"""What this machine offers, what is said about it, and what is asked of its control groups."""

import json
from pathlib import Path

import pytest

from stringd.system.sandbox import (
    Bubblewrap,
    Landlock,
    Level,
    Limits,
    Nothing,
    SandboxError,
    SandboxSpec,
    available,
    enclose,
    find_available,
    report,
)
from stringd.system.sandbox import limits as limits_module
from stringd.system.sandbox.bubblewrap import bubblewrap_argv
from stringd.system.sandbox.landlock import landlock_argv
from stringd.system.sandbox.limits import (
    Group,
    delegated_parent,
    group_settings,
    lower_limits,
)

KINDS = [
    Bubblewrap("/usr/bin/bwrap", "x86_64", True),
    Landlock(7, True),
    Landlock(1, False),
    Nothing("None here"),
]


@pytest.mark.anyio
async def test_the_answer_is_the_same_with_and_without_a_loop() -> None:
    assert await find_available() == available()


@pytest.mark.parametrize("walls", KINDS)
def test_a_report_is_a_sentence_and_facts_for_json(walls: Bubblewrap | Landlock | Nothing) -> None:
    found = report(walls)
    assert found.sentence.endswith(".")
    assert json.loads(json.dumps(found.facts)) == found.facts
    assert found.facts["walls"] in ("bubblewrap", "landlock", "none")


def test_a_machine_without_walls_says_why_and_what_to_do() -> None:
    found = report(Nothing("bubblewrap is not installed"))
    assert "without a sandbox" in found.sentence
    assert "bubblewrap is not installed" in found.sentence
    assert found.fix is not None


def test_without_walls_nothing_runs_unless_the_level_is_open() -> None:
    with pytest.raises(SandboxError, match="install bubblewrap"):
        enclose(SandboxSpec(), ["true"], {}, Nothing("None here"))
    opened = enclose(SandboxSpec(Level.OPEN), ["true"], {"A": "1"}, Nothing("None here"))
    assert opened == (["true"], {"A": "1"})


@pytest.fixture
def delegated(tmp_path: Path) -> tuple[Path, Path]:
    """A tree as the kernel shows one to a session of systemd, and where this process is in it."""
    session = tmp_path / "user.slice/app.slice"
    (session / "own.scope").mkdir(parents=True)
    for group, passed_on in ((session / "own.scope", ""), (session, "cpu memory pids")):
        (group / "cgroup.subtree_control").write_text(passed_on)
        (group / "cgroup.procs").write_text("")
    own = tmp_path / "self"
    own.write_text("1:name=systemd:/\n0::/user.slice/app.slice/own.scope\n")
    return tmp_path, own


def test_the_nearest_group_that_passes_limits_on_is_used(delegated: tuple[Path, Path]) -> None:
    mount, own = delegated
    assert delegated_parent(mount, own) == mount / "user.slice/app.slice"


def test_without_a_group_that_passes_limits_on_there_is_none(delegated: tuple[Path, Path]) -> None:
    mount, own = delegated
    (mount / "user.slice/app.slice/cgroup.subtree_control").write_text("cpu")
    assert delegated_parent(mount, own) is None
    own.write_text("8:pids:/\n")
    assert delegated_parent(mount, own) is None


def test_groups_of_ended_sandboxes_are_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended, other = tmp_path / "stringd-sandbox-1", tmp_path / "other"
    ended.mkdir()
    other.mkdir()
    limits_module.sweep(tmp_path)
    assert ended.exists(), "it may not have been entered yet"
    monkeypatch.setattr(limits_module, "_YOUNG_SECONDS", -1.0)
    limits_module.sweep(tmp_path)
    assert not ended.exists()
    assert other.exists()


def test_limits_become_settings_of_a_group() -> None:
    wanted = Limits(processes=5, memory=1024, cpu_seconds=3)
    assert dict(group_settings(wanted)) == {
        "pids.max": "5",
        "memory.max": "1024",
        "memory.swap.max": "0",
    }
    # What a group does not know, the shell does.
    lowered = lower_limits(wanted, grouped=True)
    assert lowered == "{ ulimit -t 3; } 2>/dev/null"
    assert lower_limits(Limits(processes=None), grouped=False) == ""


def test_both_kinds_of_walls_are_told_of_a_group() -> None:
    group = Group("/g/one", (("pids.max", "5"),))
    inside = bubblewrap_argv(
        Bubblewrap("/usr/bin/bwrap", "x86_64", True),
        SandboxSpec(),
        (),
        ["true"],
        variables={},
        group=group,
    )
    assert inside[7:10] == ["/usr/bin/bwrap", "/g/one", "pids.max=5"]
    launched = landlock_argv(
        Landlock(7, True), SandboxSpec(), (), ["true"], variables={}, group=group
    )
    assert {"cgroup=/g/one", "limit=pids.max=5"} <= set(launched)
