"""Documents parsed before."""

from stringd.runtime.document_cache import DocumentCache


def test_the_same_text_at_the_same_address_is_parsed_once() -> None:
    cache = DocumentCache()
    first = cache.parse("# A", "file:///a", b"1")
    assert cache.parse("# A", "file:///a", b"1") is first
    assert first.source == "# A"


def test_another_text_or_address_is_another_document() -> None:
    cache = DocumentCache()
    first = cache.parse("# A", "file:///a", b"1")
    assert cache.parse("# B", "file:///a", b"2").source == "# B"
    assert cache.parse("# A", "file:///b", b"1").uri == "file:///b"
    assert cache.parse("# A", "file:///a", b"1") is first


def test_what_was_used_longest_ago_is_dropped_first() -> None:
    cache = DocumentCache(limit=40)
    kept = [cache.parse(name * 10, name, b"") for name in "abcd"]
    assert cache.parse("a" * 10, "a", b"") is kept[0]
    cache.parse("e" * 10, "e", b"")
    assert cache.parse("a" * 10, "a", b"") is kept[0]
    assert cache.parse("b" * 10, "b", b"") is not kept[1]


def test_a_document_that_would_fill_it_is_not_kept() -> None:
    cache = DocumentCache(limit=40)
    assert cache.parse("x" * 11, "x", b"") is not cache.parse("x" * 11, "x", b"")
