"""Every tool, every spelling of a path, every answer: nothing is touched without a yes.

The rows are in `reach.py`. A built-in tool, or an argument of one, that has no row fails here.
"""

import pytest

from stringd.runs.tools.built_in import built_in_tools
from tests.requirements import proves
from tests.runs.guard.reach import HARDEST, OTHER_ARGUMENTS, REACHES, SPELLINGS, Reach, Tree
from tests.runs.guard.stage import Stage, place, refused, resources
from tests.runs.tools.support import Call

pytestmark = pytest.mark.anyio

reaches = pytest.mark.parametrize("reach", REACHES.values(), ids=REACHES)
# Every spelling for the plain use of each argument, the hardest ones for its variants.
CASES = {
    f"{name}-{spelling}": (reach, spelling)
    for name, reach in REACHES.items()
    for spelling in (HARDEST if reach.variant else SPELLINGS)
}
cases = pytest.mark.parametrize(("reach", "spelling"), CASES.values(), ids=CASES)


def test_every_argument_of_every_tool_has_a_row() -> None:
    known = {
        name: {reach.parameter for reach in REACHES.values() if reach.tool == name} | others
        for name, others in OTHER_ARGUMENTS.items()
    }
    real = {name: set(tool.parameters["properties"]) for name, tool in built_in_tools().items()}
    assert known == real


def another_tool(reach: Reach, tree: Tree) -> Call:
    """The same place, or one below it, with a tool of another name."""
    args = {"path": str(tree.root / "file.txt")}
    return ("delete_file" if reach.tool == "read_file" else "read_file"), args


@proves("RUN-33")
@cases
async def test_a_no_leaves_the_outside_as_it_was_and_a_yes_counts_once(
    stage: Stage, reach: Reach, spelling: str
) -> None:
    outside = stage.scene.outside
    call = stage.call(reach, outside, spelling)
    used = await stage.use(call, call, call, decisions=["deny", "allow", "deny"])
    for request in used.of("request_permission"):
        assert request["resource"] == place(outside, reach)
        assert (request["toolName"], request["operation"]) == (reach.tool, reach.operation)
        assert request["reason"] == "policy-ask"
    assert refused(used) == [True, False, True]
    assert stage.done == [False, True, False]
    assert stage.untouched == [True, reach.direction == "read", True]
    assert used.of("policy_updated") == []
    assert used.messages[-1]["type"] == "strategy_completed"


@proves("RUN-33")
@cases
async def test_a_session_answer_covers_one_tool_and_place_until_the_session_ends(
    stage: Stage, reach: Reach, spelling: str
) -> None:
    outside, beside = stage.scene.outside, stage.scene.beside
    call = stage.call(reach, outside, spelling)
    other = another_tool(reach, outside)
    used = await stage.use(
        call,
        call,
        stage.call(reach, beside, "absolute"),
        other,
        later=[call, call],
        decisions=["allow-session", "deny", "deny"],
    )
    assert resources(used) == [
        place(outside, reach),
        place(beside, reach),
        str(outside.root / "file.txt"),
    ]
    assert [request["toolName"] for request in used.of("request_permission")][-1] == other[0]
    assert [updated["tool"] for updated in used.of("policy_updated")] == [reach.tool]
    assert refused(used) == [False, False, True, True]
    assert stage.done[:3] == [True, True, False]
    assert stage.untouched[2:] == [True, True]
    used = await stage.again("deny-session")
    assert resources(used) == [place(outside, reach)]
    assert refused(used) == [True, True]
    assert "denied by session-deny-" in used.output
    assert stage.done[4:] == [False, False]
    assert stage.untouched[4:] == [True, True]


@proves("RUN-33")
@cases
async def test_a_changed_policy_settles_its_own_tool_and_direction(
    stage: Stage, reach: Reach, spelling: str
) -> None:
    outside = stage.scene.outside
    call = stage.call(reach, outside, spelling)
    policy = {"tool": reach.tool, "mode": reach.direction}
    used = await stage.use(call, policy={**policy, "default": "allow"})
    assert refused(used) == [False]
    used = await stage.use(call, policy={**policy, "default": "deny"})
    assert f"denied by {reach.direction}-path-policy" in used.output
    assert stage.done == [True, False]
    assert stage.untouched == [reach.direction == "read", True]


@reaches
async def test_a_policy_of_another_tool_or_direction_settles_nothing(
    stage: Stage, reach: Reach
) -> None:
    outside = stage.scene.outside
    call = stage.call(reach, outside, "link")
    policy = {"tool": reach.tool, "mode": reach.direction}
    other = "write" if reach.direction == "read" else "read"
    for change in (
        {"mode": other, "default": "allow"},
        {"tool": another_tool(reach, outside)[0], "default": "allow"},
        {"allow": ["/**", "../**", f"{outside.root}/**"]},
    ):
        used = await stage.use(call, policy={**policy, **change}, decisions=["deny"])
        assert resources(used) == [place(outside, reach)]
    assert stage.done == [False, False, False]
    assert stage.untouched == [True, True, True]


@reaches
async def test_a_session_no_ends_with_the_session(stage: Stage, reach: Reach) -> None:
    outside, beside = stage.scene.outside, stage.scene.beside
    call = stage.call(reach, outside, "link")
    elsewhere = stage.call(reach, beside, "absolute")
    used = await stage.use(call, elsewhere, later=[call], decisions=["deny-session", "deny"])
    assert resources(used) == [place(outside, reach), place(beside, reach)]
    assert stage.untouched == [True, True]
    await stage.again("allow")
    assert stage.done == [False, False, True]


@cases
async def test_inside_nobody_is_asked_and_only_a_deny_glob_closes_a_place(
    stage: Stage, reach: Reach, spelling: str
) -> None:
    inside = stage.scene.inside
    call = stage.call(reach, inside, spelling)
    await stage.use(call)
    policy = {"tool": reach.tool, "mode": reach.direction, "deny": ["place/**"]}
    used = await stage.use(call, policy=policy)
    assert f"denied by {reach.direction}-path-policy" in used.output
    assert stage.done == [True, False]
    assert stage.untouched == [True, True]
    assert stage.untouched_inside == [reach.direction == "read", True]


@reaches
async def test_stopping_while_the_question_is_open_leaves_the_outside_as_it_was(
    stage: Stage, reach: Reach
) -> None:
    scene = stage.scene
    run_id = await stage.prepare([stage.call(reach, scene.outside, "absolute")])
    await stage.watcher.send("start_run", runId=run_id)
    await stage.watcher.until("request_permission")
    before = scene.outside.state()
    await stage.watcher.send("stop_run", runId=run_id)
    assert (await stage.watcher.ended())["error"]["code"] == "CANCELLED"
    assert scene.outside.state() == before


@pytest.mark.parametrize("which", ["inside", "outside"])
async def test_listings_leave_out_what_would_have_to_be_asked_for(stage: Stage, which: str) -> None:
    """Wherever a listing begins, links that lead out of it are neither shown nor followed."""
    scene = stage.scene
    tree: Tree = getattr(scene, which)
    tree.link(tree.root / "way-folder", str(scene.beside.root))
    tree.link(tree.root / "way-file", str(scene.beside.root / "file.txt"))
    root = str(tree.root)
    calls: list[Call] = [
        ("list_directory", {"path": root, "recursive": True, "includeHidden": True}),
        ("glob", {"pattern": "**", "root": root}),
        *(
            ("search_files", {"query": query, "mode": mode, "root": root})
            for mode, query in (("path", "e"), ("text", "text"), ("regex", "t.xt"))
        ),
    ]
    decisions = ["allow"] * len(calls) if which == "outside" else []
    used = await stage.use(*calls, decisions=decisions)
    for output in used.outputs:
        assert "file.txt" in output
        assert "way-" not in output
        assert scene.beside.word not in output


async def test_moving_between_two_places_outside_needs_two_yeses(stage: Stage) -> None:
    scene = stage.scene
    args = {
        "fromPath": str(scene.outside.root / "file.txt"),
        "toPath": str(scene.beside.root / "moved.txt"),
        "expectedSha256": scene.outside.sha256,
    }
    call: Call = ("move_file", args)
    used = await stage.use(call, call, decisions=["allow", "deny", "deny"])
    assert resources(used) == [args["fromPath"], args["toPath"], args["fromPath"]]
    assert refused(used) == [True, True]
    assert stage.untouched == [True, True]


async def test_a_link_to_an_archive_is_left_where_it_is(stage: Stage) -> None:
    """Restoring removes the archive from the trash, not what led there."""
    scene = stage.scene
    link = scene.outside.root / "link.tar.gz"
    archive = scene.archive("gone.txt")
    scene.outside.link(link, archive)
    used = await stage.use(("restore_file", {"trashedPath": str(link), "targetPath": "back.txt"}))
    assert used.output.startswith("Restored back.txt")
    assert stage.untouched == [True]
    assert scene.trash.entries() == []
