"""Documents parsed before."""

from stringd.documents import Document
from stringd.documents.cache import DocumentCache


def document(cache: DocumentCache, text: str, uri: str) -> Document:
    return cache.load(text, uri, lambda: text.encode()).document


def test_the_same_text_at_the_same_address_is_parsed_once() -> None:
    cache = DocumentCache()
    first = document(cache, "# A", "file:///a")
    assert document(cache, "# A", "file:///a") is first
    assert first.source == "# A"


def test_another_text_or_address_is_another_document() -> None:
    cache = DocumentCache()
    first = document(cache, "# A", "file:///a")
    assert document(cache, "# A", "file:///b").uri == "file:///b"
    assert document(cache, "# A", "file:///a") is first
    assert document(cache, "# B", "file:///a").source == "# B"


def test_a_byte_order_mark_makes_another_file_of_the_same_text() -> None:
    cache = DocumentCache()
    for marked in (False, True, False):
        digest = b"marked" if marked else b"plain"
        loaded = cache.load("# A", "file:///a", lambda: digest, marked=marked)  # noqa: B023
        assert loaded.digest == digest


def test_what_was_used_longest_ago_is_dropped_first() -> None:
    cache = DocumentCache(limit=40)
    kept = [document(cache, name * 10, name) for name in "abcd"]
    assert document(cache, "a" * 10, "a") is kept[0]
    document(cache, "e" * 10, "e")
    assert document(cache, "a" * 10, "a") is kept[0]
    assert document(cache, "b" * 10, "b") is not kept[1]


def test_a_file_that_changes_all_the_time_pushes_nothing_out() -> None:
    cache = DocumentCache(limit=40)
    kept = document(cache, "a" * 10, "a")
    for number in range(10):
        document(cache, str(number) * 10, "b")
    assert document(cache, "a" * 10, "a") is kept


def test_a_document_that_would_fill_it_is_not_kept() -> None:
    cache = DocumentCache(limit=40)
    assert document(cache, "x" * 11, "x") is not document(cache, "x" * 11, "x")
