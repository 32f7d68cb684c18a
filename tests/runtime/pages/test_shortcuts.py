"""Resolving `@name`: page, answers, last rendering, menus, in this order."""

import pytest

from stringd.actions.provenance import HomeFile
from stringd.documents import Menu, MenuEntry, parse
from stringd.runtime.pages.shortcuts import known_shortcuts, resolve_shortcut
from stringd.runtime.topics.location import Location, Page
from stringd.runtime.topics.session import Session
from stringd.runtime.topics.users import User
from stringd.wire.topic import parse_topic

PAGE = "[@page-one P](./p.md)\n[@both B](./page.md)\n"
MENU = Menu(
    "m", "file:///m.md", (MenuEntry("m.both", "B", "/menu.md"), MenuEntry("m.x", "X", "/x"))
)


@pytest.fixture
def session() -> Session:
    session = Session(User("u", "/h"), parse_topic("main"))
    page = Page(parse(PAGE, "file:///h/a.md"), HomeFile(), menus={"m": MENU})
    session.location = Location.of(page)
    session.value_shortcuts = {"both": "value", "item-1": ("a", "b")}
    session.auto_shortcuts = {"both": "https://auto.test", "auto": "https://x.test"}
    return session


@pytest.mark.parametrize(
    ("name", "target"),
    [
        ("both", "./page.md"),
        ("page.both", "./page.md"),
        ("page-one", "./p.md"),
        ("item-1", ("a", "b")),
        ("auto", "https://x.test"),
        ("page.auto", "https://x.test"),
        ("m.both", "/menu.md"),
        ("x", "/x"),
        ("m.none", None),
        ("none", None),
        ("", None),
    ],
)
def test_names_resolve_in_order(session: Session, name: str, target: object) -> None:
    assert resolve_shortcut(session, name) == target


def test_every_known_name_resolves(session: Session) -> None:
    names = known_shortcuts(session)
    assert names == ["page-one", "both", "item-1", "auto", "m.both", "m.x"]
    assert all(resolve_shortcut(session, name) is not None for name in names)


def test_without_a_document_only_answers_resolve(session: Session) -> None:
    session.location = None
    assert resolve_shortcut(session, "auto") is None
    assert resolve_shortcut(session, "item-1") == ("a", "b")
    assert known_shortcuts(session) == ["both", "item-1"]
