"""`/open`, `/back`, `/refresh`, `/source`."""

import json

from tests.requirements import proves
from tests.support.person import Person

PLAN = (
    "---\ntitle: Plan\n---\n# Plan\n\n<!-- #goals -->\nWin.\n<!-- /goals -->\n\n## Risks\n\nNone.\n"
)


@proves("CMD-01", "CMD-04", "CMD-29")
def test_a_document_is_opened_and_described_in_the_head(person: Person) -> None:
    path = person.put("plan.md", PLAN)
    said = person.says("/open plan.md")
    assert said.text == "Opened plan.md\n---\n# Plan\n\nWin.\n\n## Risks\n\nNone."
    assert {key: said.meta[key] for key in ("uri", "title", "current_block")} == {
        "uri": path.as_uri(),
        "title": "Plan",
        "current_block": None,
    }


@proves("CMD-05", "CMD-29")
def test_a_block_is_opened_by_marker_or_heading(person: Person) -> None:
    person.put("plan.md", PLAN)
    assert person.gets("/open plan.md#goals") == "Opened plan.md#goals\n---\nWin."
    said = person.says("/open plan.md#risks")
    assert said.text == "Opened plan.md#risks\n---\n## Risks\n\nNone."
    assert said.meta["current_block"] == "#risks"


@proves("CMD-06")
def test_open_without_a_target_is_a_usage_error(person: Person) -> None:
    person.put("plan.md", PLAN)
    person.gets("/open plan.md")
    refused = person.fails("/open")
    assert refused.code == "INVALID_TARGET"
    first, examples, *rest = refused.message.split("\n")
    assert first == "Usage: /open <uri | path | file.md#block | @shortcut>"
    assert examples == "Examples:"
    assert len(rest) == 4
    assert all(line.startswith("  /open ") for line in rest)


@proves("CMD-03", "CMD-26")
def test_what_is_missing_is_named_as_it_was_typed(person: Person) -> None:
    refused = person.fails("/open ./no/such.md")
    assert refused.text == (
        "ERROR(NOT_FOUND): File not found: ./no/such.md\n"
        "Recovery: Use /ls to list available files, or check the path spelling."
    )
    person.put("plan.md", PLAN)
    assert person.fails("/open plan.md#nope").text == (
        "ERROR(BLOCK_NOT_FOUND): Block not found: #nope in plan.md\nAvailable blocks: goals"
    )
    person.put("bare.md", "text\n")
    assert person.fails("/open bare.md#x").message.endswith("\nThis document has no blocks.")


@proves("CMD-33")
def test_a_failed_open_changes_nothing(person: Person) -> None:
    person.put("plan.md", PLAN)
    person.gets("/open plan.md#goals")
    before = person.gets("/info")
    for target in ("gone.md", "plan.md#gone", "@gone", "app:gone", "/etc/passwd", "x://y"):
        person.fails(f"/open {target}")
    assert person.gets("/info") == before


@proves("CMD-07", "CMD-08")
def test_back_and_refresh_keep_the_block_and_push_nothing(person: Person) -> None:
    person.put("a.md", "# A\n\n## S\n\ntext\n")
    person.put("b.md", "# B\n")
    person.gets("/open a.md#s")
    person.gets("/open b.md")
    assert person.gets("/back") == "Back to a.md\n---\n## S\n\ntext"
    person.put("a.md", "# A\n\n## S\n\nnew\n")
    assert person.gets("/refresh") == "Refreshed a.md\n---\n## S\n\nnew"
    refused = person.fails("/back")
    assert (refused.code, refused.message) == ("INVALID_TARGET", "No previous page in history.")


@proves("CMD-34")
def test_history_counts_opened_documents_not_blocks_viewed(person: Person) -> None:
    person.put("a.md", "# A\n\n## S\n\ntext\n")
    person.put("b.md", "# B\n")
    person.gets("/open a.md")
    person.gets("/open #s")
    assert person.says("/info").meta["history_length"] == 0
    person.gets("/open a.md#s")
    assert person.says("/info").meta["history_length"] == 1
    person.gets("/open b.md")
    assert person.gets("/back").startswith("Back to a.md\n---\n## S")
    assert person.gets("/back").startswith("Back to a.md\n---\n## S")
    assert person.gets("/open #").startswith("Opened a.md\n---\n# A")


def test_a_document_deleted_while_open_stays_readable(person: Person) -> None:
    path = person.put("plan.md", PLAN)
    person.put("b.md", "# B\n")
    person.gets("/open plan.md")
    path.unlink()
    assert person.gets("/open #goals") == "Opened plan.md#goals\n---\nWin."
    assert person.gets("/source").endswith(PLAN)
    assert person.fails("/refresh").text == "ERROR(NOT_FOUND): File not found: plan.md"
    assert "block:     #goals" in person.gets("/info")
    person.gets("/open b.md")
    assert person.gets("/back") == "Back to plan.md\n---\nWin."


@proves("CMD-27")
def test_source_is_what_the_file_holds(person: Person) -> None:
    path = person.put("plan.md", PLAN)
    person.gets("/open plan.md#goals")
    assert person.gets("/source") == f"[source: {path.as_uri()}]\n---\n{PLAN}"
    refused = person.fails("/source", "file:other")
    assert (refused.code, refused.message) == ("INVALID_TARGET", "No document open.")


@proves("CMD-35", "DEF-17")
def test_a_directory_lists_itself_and_becomes_the_place(person: Person) -> None:
    person.put("my notes/plan.md", PLAN)
    person.put("index.md", "[@n Notes](my%20notes/)\n")
    listing = "Listing my notes/\n---\n  plan.md"
    assert person.gets("/open my notes") == listing
    assert person.gets("/open plan.md").startswith("Opened my notes/plan.md\n")
    assert person.gets("/open ~/index.md").startswith("Opened index.md\n")
    assert person.gets("/open @n") == listing
    assert person.gets("/open ~/my notes") == listing
    uri = (person.home / "my notes").as_uri()
    assert person.gets(f"/open {uri}", "file:other") == listing
    assert "history_length" in person.says("/info").meta


def test_dots_start_in_the_opened_directory_when_they_leave_the_workspace_from_the_document(
    person: Person,
) -> None:
    person.put("index.md", "# I\n")
    person.put("notes/plan.md", PLAN)
    person.gets("/open index.md")
    person.gets("/open notes")
    assert person.gets("/open ..").startswith("Listing ./\n")
    person.gets("/open notes")
    assert person.gets("/open ../index.md") == "Opened index.md\n---\n# I"
    person.gets("/open notes")
    assert person.fails("/open ../../x.md").code == "FILE_NOT_ALLOWED"


def test_a_directory_with_an_index_opens_it(person: Person) -> None:
    person.put("app/string.md", "# The app\n")
    assert person.gets("/open app") == "Opened app/string.md\n---\n# The app"


def test_lines_of_a_document_are_opened_exactly(person: Person) -> None:
    person.put("code.py", "def f():\r\n    return [a](https://x.test)\r\n\r\n    # end\r\n")
    person.put("b.md", "# B\n")
    person.gets("/open b.md")
    said = person.says("/open code.py:L2-L4")
    assert said.text == ("Opened code.py:L2-L4\n---\n    return [a](https://x.test)\n\n    # end")
    assert (said.meta["current_block"], said.meta["history_length"]) == (None, 1)
    assert person.gets("/open :L1") == "Opened code.py:L1\n---\ndef f():"
    assert person.gets("/open :L2-4").startswith("Opened code.py:L2-L4\n")
    assert person.says("/info").meta["history_length"] == 1
    assert person.gets("/back").startswith("Back to b.md\n")
    refused = person.fails("/open code.py:L9")
    assert refused.code == "INVALID_TARGET"
    assert refused.message == (
        "Line range out of bounds: code.py:L9 (file has 5 lines)\n"
        "Recovery: run /edit code.py for current line numbers."
    )
    assert person.fails("/open code.py:L3-L2").message == "Invalid line range: L3-L2"
    assert "file:      b.md" in person.gets("/info")


@proves("CMD-36")
def test_an_image_is_described_and_the_document_stays(person: Person) -> None:
    person.put("plan.md", PLAN)
    picture = person.put("p.PNG", b"\x89PNG\r\n\x1a\n\0\0")
    person.gets("/open plan.md")
    said = person.says("/open p.PNG")
    assert said.text == f"Opened p.PNG\n---\npath: {picture}\ntype: image/png\nsize: 10 bytes"
    assert said.meta["title"] == "Plan"
    person.put("scan.tiff", b"II*\0")
    assert "\ntype: image/tiff\nsize: 4 bytes" in person.gets("/open scan.tiff")


@proves("CMD-37")
def test_open_can_edit_and_close_can_close_another_topic(person: Person) -> None:
    person.put("a.md", "x\n")
    assert person.gets("/open --edit a.md") == person.gets("/edit a.md")
    person.gets("/open a.md", "file:other")
    assert person.gets("/close other") == "Closed: file:other"
    assert "file:other" not in person.sessions()
    refused = person.fails("/close file:other")
    assert refused.code == "NOT_FOUND"


@proves("CMD-25", "DEF-22", "CF-12")
def test_close_discards_document_variables_and_history(person: Person) -> None:
    person.put("a.md", "# A\n")
    person.put("b.md", "# B\n")
    person.gets("/open a.md")
    person.gets("/open b.md")
    person.gets('/set {x} = "1"')
    assert person.gets("/close") == "Closed: b.md"
    assert "file:      (none open)\nhistory:   0 entries\nstring:" in person.gets("/info")
    assert person.fails("/back").code == "INVALID_TARGET"
    assert person.fails("/close").text == "ERROR(INVALID_TARGET): No document open."
    assert "file:main" in person.sessions()
    person.gets("/open a.md")


def test_apps_open_by_topic_name_and_bare_word(person: Person) -> None:
    app = person.put("apps/weather/string.md", "# Weather\n")
    config = {"apps": {"weather": app.as_uri()}, "tools": {}}
    person.put("config.json", json.dumps(config))
    opened = "Opened apps/weather/string.md\n---\n# Weather"
    for target in ("weather", "app:weather"):
        assert person.gets(f"/open {target}") == opened
    assert person.gets("/open", "app:weather:korea") == opened
    assert person.fails("/open app:none").text == (
        "ERROR(NOT_FOUND): App 'none' is not installed. Run /install <source> to install it.\n"
        "Installed apps: weather"
    )


@proves("DEF-26")
def test_an_includes_id_opens_what_it_includes(person: Person) -> None:
    person.put("page.md", "# Page\n\n[!include:part](parts.md)\n")
    person.put("parts.md", "<!-- #part -->\nThe part.\n<!-- /part -->\n")
    assert person.gets("/open page.md#part") == "Opened page.md#part\n---\nThe part."
    assert "blocks:    part" in person.gets("/info")


def test_documents_of_a_later_format_are_refused(person: Person) -> None:
    person.put("new.md", '---\nsfmd: "9.0"\n---\n# New\n')
    refused = person.fails("/open new.md")
    assert refused.code == "LOAD_ERROR"
    assert "9.0" in refused.message


@proves("CMD-31")
def test_names_are_case_insensitive_and_a_doubled_slash_counts_once(person: Person) -> None:
    person.put("plan.md", PLAN)
    assert person.gets("/OPEN plan.md") == person.gets("//open plan.md")
    assert person.gets("  /open plan.md  \n").startswith("Opened plan.md\n---\n")
