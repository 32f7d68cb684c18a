"""From the text of a path to the place it really names."""

from pathlib import Path

import pytest

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    work = tmp_path / "work"
    (work / "sub").mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    links = {"out": "../outside", "gone": "../outside/gone", "in": "sub", "loop": "loop"}
    links |= {"ping": "pong", "pong": "ping", "via": "loop/../out"}
    for name, target in links.items():
        (work / name).symlink_to(target)
    (tmp_path / "alias").symlink_to("work")
    return Workspace(tmp_path / "alias")


@pytest.mark.parametrize(
    ("text", "inside"),
    [
        (".", "."),
        ("", "."),
        ("sub/new", "sub/new"),
        ("in/new", "sub/new"),
        ("sub/../sub", "sub"),
        ("nowhere/../sub", "sub"),
        ("~", "~"),
        ("...", "..."),
        ("../work/sub", "sub"),
        ("../alias/in", "sub"),
        ("out/../work/in", "sub"),
    ],
)
def test_places_inside_are_named_from_the_workspace(
    workspace: Workspace, text: str, inside: str
) -> None:
    assert workspace.place(text).inside == inside


@pytest.mark.parametrize(
    ("text", "real"),
    [
        ("..", ""),
        ("../outside", "outside"),
        ("out", "outside"),
        ("out/x", "outside/x"),
        ("gone", "outside/gone"),
        ("in/../../outside", "outside"),
        ("../work-not", "work-not"),
        ("nowhere/../out/x", "outside/x"),
    ],
)
def test_places_outside_are_named_in_full(
    workspace: Workspace, tmp_path: Path, text: str, real: str
) -> None:
    place = workspace.place(text)
    assert (place.real, place.inside) == (tmp_path / real, None)


@pytest.mark.parametrize(
    "text", ["loop/../out/x", "ping/../out", "via/x", "a\0b", "x/" * 2048 + "x"]
)
def test_a_path_that_leads_nowhere_for_sure_is_refused(workspace: Workspace, text: str) -> None:
    with pytest.raises(Denied):
        workspace.place(text)


def test_a_chain_of_links_longer_than_any_system_follows_is_refused(tmp_path: Path) -> None:
    for number in range(3000):
        (tmp_path / str(number)).symlink_to(str(number + 1))
    with pytest.raises(Denied, match="Cannot tell where"):
        Workspace(tmp_path).place("0")
