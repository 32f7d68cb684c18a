"""The text of an answer: as its first bytes say, else as it declares itself, else as it looks."""

import codecs
import re
from typing import Final

_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_READ_AS: Final = {
    "ascii": "cp1252",
    "iso8859-1": "cp1252",
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "shift_jis": "cp932",
    "euc_kr": "cp949",
}
"""What the web calls by these names is the larger set; browsers read it so."""
_NO_CHARSETS: Final = frozenset(
    {"idna", "punycode", "undefined", "unicode-escape", "raw-unicode-escape"}
)
"""Codecs that fail on most text, or take time that grows with its square."""
_META_CHARSET: Final = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?([A-Za-z0-9_.:-]+)", re.IGNORECASE
)
_META_BYTES: Final = 2048
_PROPER_UTF8: Final = re.compile("[^\0-\x7f\ufffd]")


def is_marked(body: bytes) -> bool:
    """Whether the first bytes say that this is text."""
    return any(body.startswith(mark) for mark, _ in _MARKS)


def decoded(body: bytes, declared: str | None, *, html: bool = False) -> str:
    """A body as text. HTML may declare itself inside. Never raises."""
    for mark, name in _MARKS:
        if body.startswith(mark):
            return body[len(mark) :].decode(name, "replace")
    charset = _known(declared) or (_declared_inside(body) if html else None)
    if charset is not None:
        try:
            return body.decode(charset, "replace")
        except LookupError:
            pass  # a codec, but not one of text
    text = body.decode("utf-8", "replace")
    if "\ufffd" in text and _PROPER_UTF8.search(text) is None:
        # Nothing beyond ASCII in it is UTF-8: what old pages are written in, then.
        return body.decode("cp1252", "replace")
    return text


def _known(declared: str | None) -> str | None:
    """A declared charset, unless it is one no page is written in."""
    try:
        name = codecs.lookup(declared).name if declared else ""
    except (LookupError, ValueError):
        return None
    if not name or name.replace("_", "-") in _NO_CHARSETS:
        return None
    return _READ_AS.get(name, name)


def _declared_inside(body: bytes) -> str | None:
    found = _META_CHARSET.search(body, 0, _META_BYTES)
    name = _known(found[1].decode("ascii")) if found else None
    # Whoever can read that line letter by letter does not read UTF-16.
    return None if name is not None and name.startswith(("utf-16", "utf-32")) else name
