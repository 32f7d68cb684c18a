"""Every built-in tool, made once: they hold no state of their own."""

from collections.abc import Mapping
from functools import cache

from stringd.runs.tools.ask import AskQuestion
from stringd.runs.tools.command import RunCommand
from stringd.runs.tools.daemon import RequestPrivileged, String
from stringd.runs.tools.files.editing import EditFile
from stringd.runs.tools.files.listing import Glob, ListDirectory
from stringd.runs.tools.files.moving import DeleteFile, MoveFile, RestoreFile
from stringd.runs.tools.files.reading import ReadFile
from stringd.runs.tools.files.searching import SearchFiles
from stringd.runs.tools.files.writing import CreateFile, WriteFile
from stringd.runs.tools.knowledge import ListSkills, LoadSkill, LspRequest
from stringd.runs.tools.port import Tool
from stringd.runs.tools.strategies import LaunchStrategy, ListStrategy
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
def built_in_tools() -> Mapping[str, Tool]:
    """By name."""
    tools: tuple[Tool, ...] = (
        ReadFile(),
        ListDirectory(),
        SearchFiles(),
        Glob(),
        CreateFile(),
        WriteFile(),
        EditFile(),
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
        String(),
        RequestPrivileged(),
    )
    return {tool.name: tool for tool in tools}
