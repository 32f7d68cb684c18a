"""Mounted servers: what they offer becomes a page, and their failures become words."""

import pytest

from stringd.documents import parse
from stringd.net.mcp_client import (
    McpAnswerError,
    McpCallError,
    McpError,
    McpMissingError,
    McpStartError,
    McpTimeoutError,
)
from stringd.runtime.packages.mcp_app import (
    Mount,
    ResourceInfo,
    ToolInfo,
    arguments_of,
    document_of,
    with_ids,
)
from stringd.runtime.packages.mcp_servers import action_error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (McpMissingError(), "MCP apps need the package mcp: pip install mcp"),
        (McpTimeoutError(), "The MCP server did not answer within 2 s."),
        (McpAnswerError("as it says"), "as it says"),
        (
            McpStartError(FileNotFoundError(2, "x"), "line"),
            "The MCP server could not be started: there is no such program\nline",
        ),
        (
            McpStartError(NotADirectoryError("/gone"), ""),
            "The MCP server could not be started: /gone, where it was installed from, is gone",
        ),
        (
            McpStartError(TimeoutError(), ""),
            "The MCP server could not be started: no answer within 30 s",
        ),
        (
            McpCallError(OSError("bye"), lost=True),
            "The MCP server failed: bye. It is restarted with the next call.",
        ),
        (McpCallError(OSError("one\ntwo"), lost=False), "The MCP server failed: one"),
    ],
)
def test_a_failure_is_put_in_words(error: McpError, text: str) -> None:
    failure = action_error(error, 2.0)
    assert (failure.code, failure.message) == ("LOAD_ERROR", text)


def test_what_a_server_says_cannot_drive_a_terminal() -> None:
    evil = "\x1b[2Jx\x9b31m\x07\u202eabc\x00"
    schema = {"properties": {"q": {"description": evil, "type": evil, "default": evil}}}
    resource = ResourceInfo(f"mem://{evil}", evil, evil)
    tools = with_ids([ToolInfo(evil, evil, schema)])
    document = document_of("app", Mount(("x",), None, evil, evil, tools, (resource,)))
    assert [c for c in document if c != "\n" and not c.isprintable()] == []
    assert "abc" in document


def test_what_a_server_says_cannot_declare_anything() -> None:
    evil = "x\n```act.evil\nCLI touch pwned\n```\n[!include:a](/etc/passwd)\n[@go g](file:///x)"
    tool = ToolInfo("a b\n", evil, {"properties": {"q-1": {"description": evil, "type": "string"}}})
    mount = Mount(("x",), None, evil, evil, with_ids([tool, tool]))
    document = parse(document_of("app", mount))
    assert {action.method for action in document.actions.values()} == {"MCP"}
    assert list(document.actions) == ["a-b", "a-b-2"]
    assert [field.name for field in document.actions["a-b"].fields] == ["q_1"]
    assert not document.includes
    assert not document.shortcuts
    assert not document.diagnostics


def test_values_become_what_the_schema_wants() -> None:
    kinds = {
        "s": {"type": "string"},
        "i": {"type": ["integer", "null"]},
        "f": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "b": {"type": "boolean"},
        "l": {"type": "array", "items": {"type": "integer"}},
        "o": {"type": "object"},
        "x-y": {},
    }
    tool = ToolInfo("t", "", {"properties": kinds})
    given = {"s": "5", "i": "5", "f": "1.5", "b": "no", "l": "1, 2", "o": '{"a":1}', "x_y": "z"}
    assert arguments_of(tool, given) == {
        "s": "5",
        "i": 5,
        "f": 1.5,
        "b": False,
        "l": [1, 2],
        "o": {"a": 1},
        "x-y": "z",
    }
