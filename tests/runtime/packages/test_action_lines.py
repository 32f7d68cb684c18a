"""The actions of a mounted server in a line each."""

from stringd.documents import parse
from stringd.runtime.packages.action_lines import (
    first_words,
    is_mounted,
    left_out,
    mounted_lines,
    without_list,
)
from stringd.runtime.packages.mcp_app import Mount, ToolInfo, document_of

FILES = {"type": "array", "items": {"properties": {"path": {}, "mode": {}}, "required": ["path"]}}
PUSH = ToolInfo(
    "push",
    "Push files. They go in one commit.",
    {
        "properties": {
            "message": {"type": "string", "description": "A long story " * 20},
            "files": FILES,
            "to": {"enum": ["main", "draft"]},
            "repo": {"type": "string"},
        },
        "required": ["repo", "files", "to"],
    },
)


def _page(*tools: ToolInfo) -> str:
    return document_of("hub", Mount(title="Hub", tools={each.name: each for each in tools}))


def test_a_line_has_what_is_required_and_what_it_is_for() -> None:
    document = parse(_page(PUSH, ToolInfo("ping")))
    assert mounted_lines(document, "hub.") == [
        "hub.push <files array> <to main|draft> <repo> […]  Push files",
        "hub.ping",
    ]
    assert left_out(document, "hub") == (
        "[…] are optional arguments: app:hub#ACTION shows one action whole"
    )


def test_nothing_is_said_to_be_left_out_where_nothing_is() -> None:
    assert left_out(parse(_page(ToolInfo("ping"))), "hub") == ""


def test_what_an_array_holds_is_told_on_the_actions_own_page() -> None:
    field = parse(_page(PUSH)).actions["push"].field("files")
    assert field is not None
    assert field.description == "each {path, mode?}"


def test_the_list_of_tools_is_not_repeated() -> None:
    text = "# Hub\n\n## Tools\n\n- `/act.push` — Push files.\n- `/act.ping`\n\n## Resources\n\n- x"
    assert without_list(text) == "# Hub\n\n## Resources\n\n- x"


def test_only_a_page_of_tools_alone_is_a_server_page() -> None:
    assert is_mounted(parse(_page(PUSH)))
    assert not is_mounted(parse("# Hub"))
    assert not is_mounted(parse("```act.a\nCLI echo\n```\n"))


def test_a_long_sentence_is_cut_after_a_word() -> None:
    assert first_words("One thing. And another.", 40) == "One thing"
    assert first_words("One thing and another", 12) == "One thing…"
