"""What each tool hands to the code around a run: the shape of its data, and of its problems."""

import hashlib
from pathlib import Path
from typing import Any

import pytest

from stringd.runs.guard.budget import RunBudget, RunLimits
from stringd.runs.guard.guards import RunGuards
from stringd.runs.guard.permissions import PermissionRequest, Permissions, Verdicts
from stringd.runs.guard.workspace import Workspace
from stringd.runs.record.events import ToolMutation
from stringd.runs.strategy.discover import Discovery
from stringd.runs.tools.built_in import built_in_tools
from stringd.runs.tools.context import Desk, ToolContext
from stringd.runs.tools.output import ToolOutput
from stringd.runs.tools.sandbox import RunSandbox
from stringd.runs.tools.trash import Trash
from stringd.system.sandbox import Level

pytestmark = pytest.mark.anyio

OLD = "one\ntwo\n"
SHA = hashlib.sha256(OLD.encode()).hexdigest()


def context(tmp_path: Path) -> ToolContext:
    work = tmp_path / "work"
    work.mkdir(exist_ok=True)
    (work / "f.txt").write_text(OLD, "utf-8")

    async def ask(_wish: PermissionRequest) -> str:
        return "deny"

    async def question(_agent: str, text: str) -> str:
        return f"re: {text}"

    def ignore(*_args: object) -> None:
        pass

    def mutated(_event: ToolMutation) -> None:
        pass

    permissions = Permissions(Workspace(work), RunGuards(), Verdicts(ask, ignore, ignore))
    trash = Trash(tmp_path / "trash", work)
    sandbox = RunSandbox(Level.WORKSPACE, tmp_path)
    nothing = Discovery([], [])
    desk = Desk(permissions, lambda: nothing, trash, mutated, RunBudget(RunLimits()), sandbox)
    return ToolContext("r", "a", work, question, desk)


async def call(tmp_path: Path, tool: str, **args: Any) -> ToolOutput:
    return await built_in_tools()[tool].call(args, context(tmp_path))


@pytest.mark.parametrize(
    ("tool", "args", "keys"),
    [
        (
            "read_file",
            {"path": "f.txt"},
            (
                "content encoding startLine endLine lineCount sizeBytes sha256 truncated binary "
                "newlineStyle hasBom"
            ),
        ),
        ("list_directory", {"path": "."}, "entries truncated"),
        (
            "search_files",
            {"query": "two", "mode": "regex"},
            "mode query root matches truncated filesScanned",
        ),
        ("glob", {"pattern": "*"}, "pattern root matches truncated"),
        (
            "create_file",
            {"path": "new", "content": "x"},
            "created path sha256 sizeBytes diff",
        ),
        (
            "write_file",
            {"path": "f.txt", "content": "x", "expectedSha256": SHA},
            "path beforeSha256 afterSha256 sizeBytes diff",
        ),
        (
            "edit_file",
            {"path": "f.txt", "edits": [{"oldText": "one", "newText": "1"}]},
            "path beforeSha256 afterSha256 sizeBytes diff",
        ),
        (
            "delete_file",
            {"path": "f.txt"},
            "deleted path beforeSha256 sizeBytes diff permanent trashedTo",
        ),
        (
            "run_command",
            {"command": "true"},
            (
                "command cwd exitCode signal stdout stderr stdoutTruncated stderrTruncated "
                "timedOut durationMs platform"
            ),
        ),
        ("list_skills", {}, "skills count"),
        ("list_strategy", {}, "strategies warnings"),
    ],
)
async def test_good_results_carry_their_data(
    tmp_path: Path, tool: str, args: dict[str, Any], keys: str
) -> None:
    result = await call(tmp_path, tool, **args)
    assert result.ok, result.output
    assert result.error is None
    assert result.data is not None
    assert set(result.data) == set(keys.split())


@pytest.mark.parametrize(
    ("tool", "args", "kind", "recoverable"),
    [
        ("read_file", {"path": "gone"}, "not_found", True),
        ("read_file", {"path": "/etc/hostname"}, "permission_denied", False),
        ("create_file", {"path": "f.txt", "content": ""}, "already_exists", True),
        (
            "write_file",
            {"path": "f.txt", "content": "", "expectedSha256": "0" * 64},
            "stale_file",
            True,
        ),
        (
            "edit_file",
            {"path": "f.txt", "edits": [{"oldText": "three", "newText": ""}]},
            "old_text_not_found",
            True,
        ),
        ("search_files", {"query": "(", "mode": "regex"}, "command_failed", True),
        ("load_skill", {"name": "x"}, "not_found", True),
        (
            "lsp_request",
            {"method": "textDocument/hover"},
            "language_unavailable",
            True,
        ),
        ("launch_strategy", {"name": "x", "input": ""}, "unknown", False),
    ],
)
async def test_problems_have_a_kind_and_say_whether_to_go_on(
    tmp_path: Path, tool: str, args: dict[str, Any], kind: str, recoverable: bool
) -> None:
    result = await call(tmp_path, tool, **args)
    assert not result.ok
    assert result.error is not None
    assert (result.error.kind, result.error.recoverable) == (kind, recoverable)
    assert result.output.startswith(f"Error ({kind}): {result.error.message}")
    shown = recoverable and result.error.next_step is not None
    assert ("\n\nNext step: " in result.output) == shown


async def test_a_stale_file_tells_both_hashes(tmp_path: Path) -> None:
    result = await call(tmp_path, "write_file", path="f.txt", content="", expectedSha256="0" * 64)
    assert result.error is not None
    assert result.error.details == {"expectedSha256": "0" * 64, "actualSha256": SHA}


async def test_a_failing_command_is_a_good_result(tmp_path: Path) -> None:
    result = await call(tmp_path, "run_command", command="kill -9 $$")
    assert result.ok
    assert result.data is not None
    assert (result.data["exitCode"], result.data["signal"]) == (None, "SIGKILL")
