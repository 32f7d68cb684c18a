"""What a topic keeps of where it has been."""

from stringd.actions.hosts import origin_of
from stringd.actions.provenance import WebPage
from stringd.documents import parse
from stringd.runtime.topics.history import MAX_HISTORY, MAX_REMEMBERED, History
from stringd.runtime.topics.location import DocumentPlace, Location, Page


def place(name: str, size: int) -> Location:
    document = parse("x" * size, f"https://x.test/{name}")
    return Location.of(Page(document, WebPage(origin_of(document.uri)), public=True))


def whole(history: History) -> list[bool]:
    return [each.page is not None for each in history]


def test_the_history_keeps_the_last_places() -> None:
    history = History(place(str(number), 1) for number in range(MAX_HISTORY + 5))
    assert len(history) == MAX_HISTORY
    assert next(iter(history)).uri == "https://x.test/5"
    assert history.last.uri == f"https://x.test/{MAX_HISTORY + 4}"


def test_of_large_documents_only_the_last_are_kept_whole() -> None:
    history = History(place(str(number), MAX_REMEMBERED // 5) for number in range(5))
    assert whole(history) == [False] * 3 + [True] * 2
    assert all(each.place.public for each in history)
    history.push(place("huge", MAX_REMEMBERED))
    assert whole(history) == [False] * 6


def test_going_back_makes_room_again() -> None:
    history = History(place(str(number), MAX_REMEMBERED // 5) for number in range(3))
    assert whole(history) == [False, True, True]
    for _ in range(2):
        history.pop()
    for number in range(2):
        history.push(place(str(number), MAX_REMEMBERED // 5))
    assert whole(history) == [False, True, True]


def test_places_that_came_back_without_their_documents_do_not_hide_those_that_hold_one() -> None:
    history = History(Location(DocumentPlace(f"https://x.test/{number}")) for number in range(3))
    for number in range(3):
        history.push(place(str(number), MAX_REMEMBERED // 5))
    assert whole(history) == [False] * 4 + [True] * 2


def test_a_full_history_still_finds_the_oldest_document() -> None:
    history = History(place(str(number), MAX_REMEMBERED // 5) for number in range(4))
    for number in range(MAX_HISTORY - 3):
        history.push(place(str(number), 1))
    history.push(place("large", MAX_REMEMBERED // 5))
    assert whole(history) == [False] + [True] * (MAX_HISTORY - 1)


def test_of_a_document_its_text_is_kept_and_not_what_was_found_in_it() -> None:
    left = place("a", 10)
    assert left.page is not None
    history = History([left])
    assert history.last.page is not None
    kept, document = history.last.page.document, left.page.document
    assert kept is not document
    assert kept.source is document.source
    assert (kept.uri, kept.original, kept.converted) == (document.uri, "x" * 10, False)
    assert history.last.place == left.place
