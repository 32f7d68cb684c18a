"""Every built-in tool, made once: they hold no state of their own."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from stringd.runs.tools.ask import AskQuestion
from stringd.runs.tools.base import BuiltInTool
from stringd.runs.tools.command import RunCommand
from stringd.runs.tools.files.edit import EditFile
from stringd.runs.tools.files.list import Glob, ListDirectory
from stringd.runs.tools.files.move import DeleteFile, MoveFile, RestoreFile
from stringd.runs.tools.files.patch import ApplyPatch
from stringd.runs.tools.files.read import ReadFile
from stringd.runs.tools.files.search import SearchFiles
from stringd.runs.tools.files.write import CreateFile, WriteFile
from stringd.runs.tools.gate import RequestPrivileged
from stringd.runs.tools.launch import LaunchStrategy, ListStrategy
from stringd.runs.tools.skills import ListSkills, LoadSkill, LspRequest
from stringd.runs.tools.string import StringTool
from stringd.runs.tools.todos import (
    TodoAdd,
    TodoClear,
    TodoComplete,
    TodoGet,
    TodoGetNext,
    TodoRemove,
)
from stringd.runs.tools.web import Webfetch


@cache
def built_in_tools() -> Mapping[str, BuiltInTool[Any]]:
    """By name. `lsp_request` is there so that files naming it load; models never see it."""
    tools: tuple[BuiltInTool[Any], ...] = (
        ReadFile(),
        ListDirectory(),
        SearchFiles(),
        Glob(),
        CreateFile(),
        WriteFile(),
        EditFile(),
        ApplyPatch(),
        DeleteFile(),
        RestoreFile(),
        MoveFile(),
        RunCommand(),
        Webfetch(),
        ListSkills(),
        LoadSkill(),
        ListStrategy(),
        LaunchStrategy(),
        TodoAdd(),
        TodoComplete(),
        TodoGet(),
        TodoGetNext(),
        TodoRemove(),
        TodoClear(),
        AskQuestion(),
        LspRequest(),
        StringTool(),
        RequestPrivileged(),
    )
    return {tool.name: tool for tool in tools}


@cache
def shell_tools() -> frozenset[str]:
    """Those that hand command lines to a shell."""
    return frozenset(name for name, tool in built_in_tools().items() if tool.runs_shell)


@cache
def rebuilding_tools() -> frozenset[str]:
    """Those a resumed run calls again, because what they did was in memory alone."""
    return frozenset(name for name, tool in built_in_tools().items() if tool.rebuilds_state)
