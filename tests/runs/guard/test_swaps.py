"""What was allowed is what is opened, whatever becomes of the path in between."""

from pathlib import Path
from typing import Any

import pytest

from stringd.runs.guard.permissions import Permissions
from stringd.runs.guard.workspace import WorkspacePath
from tests.requirements import proves
from tests.runs.guard.reach import REACHES, SPELLINGS, Reach, linked
from tests.runs.guard.stage import Stage, place, refused

pytestmark = pytest.mark.anyio

reaches = pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES)
FILES = {name: reach for name, reach in REACHES.items() if reach.leaf}


def swapping(monkeypatch: pytest.MonkeyPatch, path: str, old: Path, new: Path) -> None:
    """Once the guard has let this path through, `old` becomes a link to `new`."""
    allowed = Permissions.path

    def swap() -> None:
        if old.exists():
            old.rename(old.with_name("was"))
        old.symlink_to(new)

    async def swapped(self: Permissions, *args: Any) -> WorkspacePath:
        found = await allowed(self, *args)
        if args[3] == path:
            swap()
        return found

    monkeypatch.setattr(Permissions, "path", swapped)


@proves("RUN-33")
@reaches
async def test_a_folder_swapped_for_a_link_after_the_check_is_not_followed(
    stage: Stage, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = stage.scene
    path = SPELLINGS["dots"](scene, scene.inside, scene.inside.root / reach.leaf)
    stage.watched = (reach, scene.outside)
    call = reach.tool, reach.args(scene, scene.inside, path)
    swapping(monkeypatch, path, scene.inside.root, scene.outside.root)
    used = await stage.use(call)
    assert scene.outside.word not in used.output
    assert (stage.done, stage.untouched) == ([False], [True])


@reaches
async def test_a_folder_swapped_after_a_yes_is_not_followed_elsewhere(
    stage: Stage, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = stage.scene
    call = stage.call(reach, scene.outside, "absolute")
    before = scene.beside.state()
    swapping(monkeypatch, place(scene.outside, reach), scene.outside.root, scene.beside.root)
    used = await stage.use(call, decisions=["allow"])
    assert scene.beside.word not in used.output
    assert stage.done == [False]
    assert scene.beside.state() == before


@pytest.mark.parametrize("reach", FILES.values(), ids=FILES)
async def test_a_file_swapped_for_a_link_after_the_check_is_not_followed(
    stage: Stage, reach: Reach, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = stage.scene
    leaf = scene.inside.root / reach.leaf
    leaf.parent.mkdir(parents=True, exist_ok=True)
    path = SPELLINGS["dots"](scene, scene.inside, leaf)
    stage.watched = (reach, scene.outside)
    call = reach.tool, reach.args(scene, scene.inside, path)
    swapping(monkeypatch, path, leaf, scene.outside.root / reach.leaf)
    used = await stage.use(call)
    assert scene.outside.word not in used.output
    assert stage.untouched == [True]


@reaches
async def test_links_without_end_lead_nowhere(stage: Stage, reach: Reach) -> None:
    """Python resolves such a path no further, so what follows the loop could be a way out."""
    scene = stage.scene
    linked(scene, "loop", "loop")
    linked(scene, "out", scene.outside.root)
    path = "/".join(filter(None, ("loop/../out", reach.leaf)))
    stage.watched = (reach, scene.outside)
    used = await stage.use((reach.tool, reach.args(scene, scene.outside, path)))
    assert refused(used) == [True]
    assert (stage.done, stage.untouched) == ([False], [True])
