"""The grammar of the shell, and where it and a real shell are known to disagree.

The parser is a C library and the text comes from others: it gets plain ASCII of bounded length, as
its scanner reads outside its tables for other characters.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from tree_sitter import Node, Parser

MAX_LINE: Final = 256 * 1024
# Real lines nest a handful of times; deeper ones are made to exhaust the reader.
_DEEPEST: Final = 60
# A letter of a word, but of no name, as any character beyond ASCII is to the shell.
_STAND_IN: Final = "^"
_BEYOND_ASCII: Final = re.compile(r"[^\x02-\x7f]")
# Blanks to the grammar, letters to the shell; and a line continued in the middle of a word.
_READ_OTHERWISE: Final = re.compile(r"[\0\x02-\x08\x0b-\x1f\x7f\x85\xa0\u2028\u2029]|\S\\\n\S")
# What the grammar sometimes takes for one word, and a shell does not.
_NOT_A_WORD: Final = re.compile(r"""[\s`'"();&|<>]|\$[\w{(]""")
_ESCAPED: Final = re.compile(r"\\.", re.DOTALL)
_EXPANDS: Final = re.compile(r"`|\$[({\[]")
QUOTES: Final = frozenset("\"'\\")
_WORDS: Final = frozenset(
    (
        "word",
        "number",
        "string",
        "raw_string",
        "ansi_c_string",
        "translated_string",
        "concatenation",
        "brace_expression",
        "simple_expansion",
        "expansion",
        "arithmetic_expansion",
        "command_substitution",
        "process_substitution",
    )
)


class UnreadableError(Exception):
    """The parser is not even asked; the text says why."""


def parse(line: str) -> "Node":
    """The tree of a line, with one byte for each of its characters. Raises `UnreadableError`."""
    if len(line) > MAX_LINE:
        raise UnreadableError("it is too long to be read")
    if _READ_OTHERWISE.search(line):
        raise UnreadableError("it holds characters that hide what it runs")
    root = _parser().parse(_BEYOND_ASCII.sub(_STAND_IN, line).encode("ascii")).root_node
    if _is_deep(root):
        raise UnreadableError("it is nested too deeply to be read")
    return root


@cache
def _parser() -> "Parser":
    import tree_sitter
    import tree_sitter_bash

    return tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))


def _is_deep(root: "Node") -> bool:
    deepest, level = 0, [root]
    while level and deepest <= _DEEPEST:
        level = [child for node in level for child in node.named_children]
        deepest += 1
    return deepest > _DEEPEST


def left_out(root: "Node") -> Iterator[tuple[int, int]]:
    """Where no token covers the line; the grammar drops the lone dash of `python - <<END`."""
    line, at, nodes = root.text or b"", 0, [root]
    offset = root.start_byte
    while nodes:
        node = nodes.pop()
        if node.type == "heredoc_body" and not _hides_something(node):
            at = node.end_byte
            continue
        if node.child_count:
            nodes += reversed(node.children)
            continue
        lost = line[max(0, at - offset) : max(0, node.start_byte - offset)]
        allowed = (b"", b"-") if node.type.startswith("<<") else (b"",)
        if lost.replace(b"\\\n", b"").strip() not in allowed:
            yield at, node.start_byte
        at = max(at, node.end_byte)
    if line[max(0, at - offset) :].strip():
        yield at, offset + len(line)


def _hides_something(body: "Node") -> bool:
    """Whether what the grammar took for plain text of a here-document may run something."""
    text, begin = body.text or b"", body.start_byte
    plain = bytearray(text)
    for part in body.named_children:
        if part.type != "heredoc_content":
            plain[part.start_byte - begin : part.end_byte - begin] = b" " * (
                part.end_byte - part.start_byte
            )
    return _EXPANDS.search(_ESCAPED.sub("", plain.decode("ascii"))) is not None


def is_odd(node: "Node") -> bool:
    """Whether the grammar took for one thing what may be several to a shell."""
    if node.type == "ERROR" or node.is_missing:
        return True
    match node.type:
        case "word":
            return _NOT_A_WORD.search(_ESCAPED.sub("", _raw(node))) is not None
        case "simple_expansion":
            # `> $ rm x` is a file called $, and then a command. In "$a $b" the blank is text.
            quoted = node.parent is not None and node.parent.type == "string"
            text = _raw(node).lstrip() if quoted else _raw(node)
            return any(letter.isspace() for letter in text)
        case "concatenation":
            return not all(child.is_named for child in node.children)
        case "command_substitution":
            return _raw(node).startswith("`") and "\\" in _raw(node)
        case "command":
            return _spans_lines(node) or any(_is_operator(child) for child in node.children)
        case "heredoc_redirect":
            return _is_odd_heredoc(node)
        case _:
            return False


def _raw(node: "Node") -> str:
    return (node.text or b"").decode("ascii")


def _is_operator(child: "Node") -> bool:
    """A word that changes how the grammar reads what follows: `p == x`, `p $"x"`."""
    if child.is_named:
        return False
    following = child.next_sibling
    alone = following is None or following.start_byte > child.end_byte
    return not (child.type == "$" and alone)


def _is_odd_heredoc(node: "Node") -> bool:
    parts = {child.type: _raw(child) for child in node.named_children}
    start = parts.get("heredoc_start", "")
    hidden = "`" in parts.get("heredoc_body", "") and not set(start) & QUOTES
    delimiter = "".join(letter for letter in start if letter not in QUOTES)
    ended = parts.get("heredoc_end", "").strip() == delimiter
    return hidden or _STAND_IN in start or not ended


def _spans_lines(command: "Node") -> bool:
    """Whether a line ends between its words: it would be two commands."""
    text, begin = command.text or b"", command.start_byte
    ends = [child.end_byte - begin for child in command.children]
    starts = [child.start_byte - begin for child in command.children[1:]]
    gaps = (text[end:start] for end, start in zip(ends, starts, strict=False))
    return any(b"\n" in gap.replace(b"\\\n", b"") for gap in gaps)


def behind(redirect: "Node") -> list["Node"]:
    """Words of the command that are behind a redirection, as in `rm >log -r x`."""
    words = [child for child in redirect.named_children if child.type in _WORDS]
    if redirect.type == "heredoc_redirect":
        inner = [each for each in redirect.named_children if each.type == "file_redirect"]
        return words + [word for each in inner for word in behind(each)]
    return words[1:]
