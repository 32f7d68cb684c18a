"""What a session keeps in memory."""

import pytest

from stringd.documents import parse
from stringd.runtime.page import Location, Page
from stringd.runtime.session import MAX_HISTORY, MAX_REMEMBERED, Session
from stringd.runtime.users import User
from stringd.wire.topic import parse_topic


@pytest.fixture
def session() -> Session:
    return Session(User("u", "/home/u"), parse_topic("main"))


def place(name: str, size: int) -> Location:
    uri = f"https://x.test/{name}"
    return Location(uri, None, Page(parse("x" * size, uri), public=True))


def test_the_history_keeps_the_last_places(session: Session) -> None:
    for number in range(MAX_HISTORY + 5):
        session.remember(place(str(number), 1))
    assert len(session.history) == MAX_HISTORY
    assert session.history[0].uri == "https://x.test/5"


def test_of_large_documents_only_the_last_are_kept_whole(session: Session) -> None:
    for number in range(5):
        session.remember(place(str(number), MAX_REMEMBERED // 5))
    assert [each.page is not None for each in session.history] == [False] * 3 + [True] * 2
    assert all(each.public for each in session.history)
    session.remember(place("huge", MAX_REMEMBERED))
    assert [each.page for each in session.history] == [None] * 6
