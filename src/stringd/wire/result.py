"""What a command yields, and its two encodings.

A command answers with one `Result`. The HTTP wire prints the response format: a system message,
for pages followed by `---` and the content. The ChanFlow wire prints the transport form: `✓`
feedback with the diff below it, `✗ CODE: message` for errors. Pages read the same on both.
"""

import re
from typing import Final

import msgspec

_UNSENDABLE: Final = re.compile("[\ud800-\udfff]")
_PIECE: Final = 64 * 1024
"""Long text is tidied so many characters at a time: no other thread runs during one of them."""


class Result(msgspec.Struct, frozen=True, gc=False):
    """The outcome of one command.

    `content` is what is below the `---`; `None` means a confirmation without one.
    `feedback` and `mode` show only in the transport form, `diff` there and where it is asked for.
    """

    ok: bool
    message: str
    content: str | None = None
    code: str | None = None
    feedback: str | None = None
    diff: str | None = None
    mode: str | None = None
    note: str | None = None
    """For models, over MCP alone: the protocol fixes the other forms."""

    @classmethod
    def page(cls, message: str, content: str) -> "Result":
        """A system message and the content it announces."""
        return cls(True, message, content)

    @classmethod
    def done(
        cls,
        message: str,
        *,
        feedback: str | None = None,
        diff: str | None = None,
        mode: str | None = None,
    ) -> "Result":
        """A confirmation. An edit adds its summary, its diff and `mode="edit"`."""
        return cls(True, message, feedback=feedback, diff=diff, mode=mode)

    @classmethod
    def error(cls, code: str | None, message: str, content: str | None = None) -> "Result":
        """A failure. Only shell failures carry content (their output)."""
        return cls(False, message, content, code)


def is_sendable(text: str) -> bool:
    """Whether UTF-8 can carry the text as it is."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def sendable(text: str) -> str:
    """Text as UTF-8 can carry it; what was not UTF-8 in a file or its name is shown as `�`."""
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    return "".join(_UNSENDABLE.sub("\ufffd", piece) for piece in pieces)


def response_text(result: Result, *, with_diff: bool = False) -> str:
    """The body of a reply on the HTTP wire, without its `re:` line.

    The protocol's confirmations are one line; `with_diff` adds what an edit changed.
    """
    text = result.message
    if result.content is not None:
        text = f"{text}\n---\n{result.content}" if text else result.content
    elif with_diff and result.diff:
        text = f"{text}\n---\n{result.diff}"
    return text if result.ok else f"ERROR({result.code or 'UNKNOWN'}): {text}"


def transport_text(result: Result) -> str:
    """The payload of a ChanFlow reply block."""
    if result.content is not None:
        page = f"{result.message}\n---\n{result.content}" if result.message else result.content
        return page if result.ok else f"✗ {result.code or 'UNKNOWN'}: {page}"
    if not result.ok:
        return f"✗ {result.code or 'UNKNOWN'}: {result.message}"
    confirmation = f"✓ {result.feedback or result.message}"
    return f"{confirmation}\n\n{result.diff}" if result.diff else confirmation
