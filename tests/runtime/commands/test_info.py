"""`/info`: every row, in order, only when it applies."""

import json

from stringd import __version__
from tests.requirements import proves
from tests.support.person import Person
from tests.support.web import Reply, WebServer

FULL = """---
title: Plan
---
# Plan

[!nav:main](nav.md)

<!-- #goals -->
[@desk Desk](https://desk.test) and [Docs](https://docs.test/x)
<!-- /goals -->

<!-- #risks -->
None.
<!-- /risks -->

```act.find
GET https://x.test/
```

[Unknown][@nobody]
"""


@proves("CMD-18")
def test_every_row_stands_in_its_place(person: Person) -> None:
    person.put("notes/plan.md", FULL)
    person.put("notes/nav.md", "[@a A](a.md)\n")
    person.put("first.md", "x\n")
    person.gets("/open first.md")
    person.gets("/open notes/plan.md")
    person.gets("/open #goals")
    person.gets('/set {city} = "Seoul"')
    assert person.gets("/info") == (
        "Session info\n---\n"
        "file:      notes/plan.md\n"
        "cwd:       ~/notes/\n"
        "title:     Plan\n"
        "block:     #goals\n"
        "blocks:    goals, risks\n"
        "menus:     main\n"
        "shortcuts: @desk, @docs\n"
        "actions:   find(GET)\n"
        "history:   1 entries\n"
        'vars:      {city}="Seoul"\n'
        "\n"
        "Warnings:\n"
        "  Unknown shortcut @nobody — define with: [@nobody Unknown](URI)"
    )


def test_without_a_document_it_says_where_the_topic_stands(person: Person) -> None:
    person.put("notes/x.md", "x\n")
    empty = (
        "Session info\n---\ncwd:       ~/\nfile:      (none open)\nhistory:   0 entries\n"
        f"string:    v{__version__}"
    )
    assert person.gets("/info") == empty
    person.gets("/open notes")
    assert person.gets("/info") == empty.replace("~/", "~/notes/")


def test_an_app_topic_names_its_app(person: Person) -> None:
    page = person.put("apps/w/string.md", '---\nname: w\nversion: "1.2"\n---\n# W\n')
    person.put("config.json", json.dumps({"apps": {"w": str(page)}}))
    assert person.gets("/info", "app:w:kr").split("\n")[2:5] == [
        "app:       w:kr",
        "status:    installed, not yet opened",
        "installed: w",
    ]
    person.gets("/open", "app:w:kr")
    assert person.gets("/info", "app:w:kr").split("\n")[2:6] == [
        "app:       w:kr",
        "name:      w",
        "version:   1.2",
        "file:      apps/w/string.md",
    ]
    assert "status:    not installed" in person.gets("/info", "app:none")


def test_a_web_topic_shows_an_address(person: Person, web: WebServer) -> None:
    web.answer = Reply("<p>Hi</p>", "text/html")
    person.gets(f"/open {web.url}/p", "web:x")
    assert person.gets("/info", "web:x").split("\n")[2:] == [
        f"url:       {web.url}/p",
        "source:    converted from HTML (use /source to view original)",
        "history:   0 entries",
    ]
    path = person.put("a.md", "x\n")
    person.gets("/open ~/a.md", "web:x")
    assert f"url:       {path.as_uri()}\nfile:      a.md" in person.gets("/info", "web:x")


def test_many_shortcuts_are_counted(person: Person) -> None:
    person.put("many.md", "".join(f"[L{n}](https://x.test/{n})\n" for n in range(20)))
    person.gets("/open many.md")
    row = next(line for line in person.gets("/info").split("\n") if line.startswith("shortcuts"))
    assert row.endswith("@l11, +8 more (20 total)")


def test_a_shortcut_is_explained(person: Person) -> None:
    person.put("page.md", "[@api API](./api.md) [Docs](https://docs.test/x)\n")
    person.gets("/open page.md")
    assert person.gets("/info @api") == "@api → ./api.md"
    assert person.gets("/info @page.api") == "@page.api → ./api.md"
    assert person.gets("/info @docs") == "@docs → https://docs.test/x"
    refused = person.fails("/info @nope")
    assert refused.text == "ERROR(NOT_FOUND): Shortcut not found: @nope"
