"""`/nav`: menus and shortcuts."""

import json

import pytest

from tests.requirements import proves
from tests.support.person import Person

PAGE = "# Page\n\n[!nav:main](nav/main.md)\n\n[@api API](./api.md) [Docs](https://docs.test/a)\n"
MENU = "[@auth Auth](../api.md#auth)\n[@b B](../b.md)\n[@c C](../c.md)\n[@d D](../d.md)\n"


@pytest.fixture
def reader(person: Person) -> Person:
    person.put("page.md", PAGE)
    person.put("nav/main.md", MENU)
    person.put("api.md", "# API\n\n## Auth\n\nTokens.\n")
    person.gets("/open page.md")
    return person


@proves("CMD-15")
def test_menus_are_listed_with_their_first_labels(reader: Person) -> None:
    assert reader.gets("/nav") == (
        "Menus\n---\nmain (4): Auth, B, C, ... (1 more)\n\n"
        "use: /nav <name> to show menu · /open @menu.id to follow link"
    )


def test_a_page_without_menus_says_how_to_get_one(person: Person) -> None:
    person.put("bare.md", "text\n")
    person.gets("/open bare.md")
    said = person.gets("/nav")
    assert said.startswith("Menus\n---\n")
    assert said.endswith("\n\nTry: /nav scaffold")


@proves("CMD-16")
def test_a_menu_shows_its_entries(reader: Person) -> None:
    assert reader.gets("/nav main").startswith("Menu: main\n---\n[Auth][@main.auth]\n[B][@main.b]")
    refused = reader.fails("/nav nope")
    assert refused.code == "NOT_FOUND"
    assert refused.message.split("\n")[0] == "Menu not found: nope"


@proves("CMD-17", "DEF-25")
@pytest.mark.parametrize("word", ["scaffold", "create", "bootstrap"])
def test_a_scaffold_lists_each_address_once(reader: Person, word: str) -> None:
    said = reader.gets(f"/nav {word}")
    assert said.startswith("Nav Scaffold\n---\n")
    assert said.count("./api.md") == 1
    assert "[@docs Docs](https://docs.test/a)" in said
    assert "[!nav:main](nav/main.md)" not in said


def test_a_page_without_links_has_no_scaffold(person: Person) -> None:
    person.put("bare.md", "text\n")
    person.gets("/open bare.md")
    assert person.gets("/nav scaffold").startswith("No links found on this page.")
    assert person.gets("/nav page") == "No shortcuts on this page."


def test_the_pages_own_shortcuts_are_a_plain_list(reader: Person) -> None:
    assert reader.gets("/nav page") == (
        "Shortcuts:\n  @api → ./api.md\n\nAuto:\n  @docs → https://docs.test/a\n\nuse: /open @id"
    )


def test_every_name_resolves_to_where_it_leads(reader: Person) -> None:
    rows = reader.gets("/nav --resolve").split("\n")
    assert f"@api → {reader.home}/api.md" in rows
    assert f"@main.auth → {reader.home}/api.md#auth" in rows


@proves("DEF-27")
def test_a_menu_entry_opens_its_block_and_may_be_named_short(reader: Person) -> None:
    assert reader.gets("/open @main.auth") == "Opened api.md#auth\n---\n## Auth\n\nTokens."
    reader.gets("/back")
    assert reader.gets("/open @auth").startswith("Opened api.md#auth\n")


def test_nothing_of_it_moves_the_reader(reader: Person) -> None:
    before = reader.gets("/info")
    for form in ("", " main", " page", " scaffold", " --resolve"):
        reader.gets(f"/nav{form}")
    assert reader.gets("/info") == before


def test_it_needs_a_document_except_in_an_app_topic(person: Person) -> None:
    refused = person.fails("/nav")
    assert (refused.code, refused.message) == (
        "INVALID_TARGET",
        "No document is open in this session. Open a document first, then run /nav again.",
    )
    app = person.put("apps/w/string.md", PAGE)
    person.put("apps/w/nav/main.md", MENU)
    person.put("config.json", json.dumps({"apps": {"w": str(app)}}))
    assert person.gets("/nav", "app:w").startswith("Menus\n---\nmain (4)")


@pytest.mark.parametrize(
    ("page", "menu"), [("[!nav:m](page.md)\n", ""), ("[!nav:m](m.md)\n", "[!nav:m](page.md)\n")]
)
def test_a_menu_that_leads_back_to_its_document_is_refused(
    person: Person, page: str, menu: str
) -> None:
    path = person.put("page.md", page)
    person.put("m.md", menu)
    refused = person.fails("/open page.md")
    assert refused.code == "CIRCULAR_REFERENCE"
    assert refused.message == f"Circular menu/nav reference detected: {path.as_uri()}"
