"""ChanFlow: tagged blocks in running text, `<𝒞=string:topic>payload</𝒞>`. Sans-IO.

How text is read:

- A tag starts with `<𝒞` or `</𝒞`. Every opening tag is paired with its closing tag as brackets are,
  and only blocks outside all others count. So a block quoted inside a payload, or inside another
  channel's message, never runs.
- A string block that holds another tag, has no closing tag, or whose opening tag cannot be read is
  a `BrokenBlock`: it is reported and nothing in it runs. An opening tag that is never closed ends
  where the next tag starts, so one forgotten tag does not silence the blocks after it.
- Other channels are left alone; so is text between blocks.

Inside a payload `<𝒞` is written `&lt;𝒞`, and `&lt;𝒞` itself `&amp;lt;𝒞`, and so on: visible, exact
to undo, and never a tag. Readers undo it after blocks are cut, so content cannot forge blocks.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

__all__ = ["Block", "BrokenBlock", "encode", "escape", "join", "parse", "unescape"]

CHANNEL: Final = "string"
CLOSE: Final = "</𝒞>"

_TAG = re.compile(r"<(/?)𝒞")
_CLOSE = re.compile(r"</𝒞\s*>")
_OPEN = re.compile(
    r"""<𝒞=([^\s:<>="]+)(?::([^\s<>"]*))?((?:\s+[\w-]+(?:=(?:"[^"<>]*"|[^\s"<>]+))?)*)\s*>"""
)
_ATTRIBUTE = re.compile(r"""([\w-]+)=(?:"([^"]*)"|([^\s"]+))""")
_OURS = re.compile(r"<𝒞[\s=:]*string\b")
_TOPIC = re.compile(r"[\s=:]*string:?([A-Za-z0-9_-]+(?::[A-Za-z0-9_-]+)*)?")
_ESCAPABLE = re.compile(r"<(?=\s*+(?:/\s*+)?𝒞)|&(?=(?:amp;)*lt;\s*+(?:/\s*+)?𝒞)")
_ESCAPED = re.compile(r"&(?:lt;(?=\s*+(?:/\s*+)?𝒞)|amp;(?=(?:amp;)*lt;\s*+(?:/\s*+)?𝒞))")
_UNSAFE_TOPIC = re.compile(r"[^A-Za-z0-9_:-]")
_UNSAFE_VALUE = re.compile(r"""[^\w:.+-]""")


class Block(NamedTuple):
    """A well-formed string block."""

    topic: str
    """Everything after `string:`, as written; empty when absent."""
    payload: str
    attributes: Mapping[str, str] = {}


class BrokenBlock(NamedTuple):
    """A string block that cannot be read. Nothing in it may run."""

    topic: str
    """The topic as far as it could be read; may be empty."""
    reason: str


def escape(text: str) -> str:
    """Text with everything that would read as a ChanFlow tag made harmless, visibly."""
    if "𝒞" not in text:
        return text
    return _ESCAPABLE.sub(lambda match: "&lt;" if match[0] == "<" else "&amp;", text)


def unescape(text: str) -> str:
    """Undo `escape`, exactly."""
    if "𝒞" not in text:
        return text
    return _ESCAPED.sub(lambda match: "<" if match[0] == "&lt;" else "&", text)


def encode(topic: str, payload: str, *, time: str | None = None, mode: str | None = None) -> str:
    """One reply block. The payload is escaped; attributes come after the topic."""
    tag = f"<𝒞={CHANNEL}:{_UNSAFE_TOPIC.sub('-', topic)}"
    if time is not None:
        tag += f' time="{_UNSAFE_VALUE.sub("", time)}"'
    if mode is not None:
        tag += f" mode={_UNSAFE_VALUE.sub('', mode)}"
    return f"{tag}>\n{escape(payload)}\n{CLOSE}"


def join(blocks: Iterable[str]) -> str:
    """Reply blocks as one text: a blank line between them, a newline at the end."""
    text = "\n\n".join(blocks)
    return f"{text}\n" if text else ""


class _Tag(NamedTuple):
    start: int
    end: int
    opens: bool
    readable: re.Match[str] | None


def parse(text: str) -> list[Block | BrokenBlock]:
    """The string blocks of a text, in order; broken ones as values. Never raises."""
    tags = _tags(text)
    partner = _pairs(tags)
    found: list[Block | BrokenBlock] = []
    index = 0
    while index < len(tags):
        tag = tags[index]
        close = partner.get(index)
        if tag.opens and _is_ours(text, tag):
            found.append(_block(text, tags, index, close))
        index = index + 1 if close is None or not tag.opens else close + 1
    return found


def _tags(text: str) -> list[_Tag]:
    found: list[_Tag] = []
    position = 0
    while (hit := _TAG.search(text, position)) is not None:
        opens = not hit[1]
        match = (_OPEN if opens else _CLOSE).match(text, hit.start())
        position = match.end() if match is not None else hit.end()
        found.append(_Tag(hit.start(), position, opens, match))
    return found


def _pairs(tags: list[_Tag]) -> dict[int, int]:
    """Opening tag → its closing tag, by index."""
    partner: dict[int, int] = {}
    opened: list[int] = []
    for index, tag in enumerate(tags):
        if tag.opens:
            opened.append(index)
        elif opened and tag.readable is not None:
            partner[opened.pop()] = index
    return partner


def _is_ours(text: str, tag: _Tag) -> bool:
    if tag.readable is not None:
        return tag.readable[1] == CHANNEL
    return _OURS.match(text, tag.start) is not None


def _block(text: str, tags: list[_Tag], index: int, close: int | None) -> Block | BrokenBlock:
    tag = tags[index]
    if tag.readable is None:
        named = _TOPIC.match(text, tag.end)
        return BrokenBlock((named and named[1]) or "", "the opening tag cannot be read")
    topic = tag.readable[2] or ""
    if ":" not in topic and _ATTRIBUTE.sub("", tag.readable[3]).strip():
        # More likely a topic with a space in its name than an attribute without a value.
        return BrokenBlock(topic, "the opening tag cannot be read")
    if close is None:
        return BrokenBlock(topic, f"the block is not closed; end it with {CLOSE}")
    if close != index + 1:
        return BrokenBlock(
            topic, "the block holds another tag; write < before 𝒞 as &lt; in content"
        )
    return Block(topic, _payload(text[tag.end : tags[close].start]), _attributes(tag.readable[3]))


def _payload(inner: str) -> str:
    """What is between the tags, without the newline after the first and before the last."""
    if inner.startswith("\n"):
        return unescape(inner.removeprefix("\n").removesuffix("\n"))
    last = "\r\n" if inner.endswith("\r\n") else "\n"
    return unescape(inner.removeprefix("\r\n").removesuffix(last))


def _attributes(text: str) -> dict[str, str]:
    found = _ATTRIBUTE.finditer(text)
    return {each[1]: each[2] if each[2] is not None else each[3] for each in found}
