"""One result, two encodings."""

import pytest

from stringd.wire.result import Result, is_sendable, response_text, sendable, transport_text


@pytest.mark.parametrize(
    ("result", "response", "transport"),
    [
        (Result.page("Title", "text"), "Title\n---\ntext", "Title\n---\ntext"),
        (Result.page("", "text"), "text", "text"),
        (Result.page("Title", ""), "Title\n---\n", "Title\n---\n"),
        (Result.done("Written: a"), "Written: a", "✓ Written: a"),
        (
            Result.done("Written: a", feedback="Created a", diff="+x", mode="edit"),
            "Written: a",
            "✓ Created a\n\n+x",
        ),
        (Result.error("NOT_FOUND", "gone"), "ERROR(NOT_FOUND): gone", "✗ NOT_FOUND: gone"),
        (Result.error(None, "odd"), "ERROR(UNKNOWN): odd", "✗ UNKNOWN: odd"),
        (
            Result.error("EXIT_1", "exit: 1", "out"),
            "ERROR(EXIT_1): exit: 1\n---\nout",
            "✗ EXIT_1: exit: 1\n---\nout",
        ),
    ],
)
def test_a_result_reads_as_each_wire_wants_it(
    result: Result, response: str, transport: str
) -> None:
    assert response_text(result) == response
    assert transport_text(result) == transport


def test_long_text_is_tidied_everywhere() -> None:
    text = "a\udc80" * 100_000
    assert not is_sendable(text)
    assert sendable(text) == "a\ufffd" * 100_000
    assert is_sendable("é" * 100_000)
