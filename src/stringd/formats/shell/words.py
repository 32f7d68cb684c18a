"""The words of a shell command, as far as they are known before it runs."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from tree_sitter import Node

# Stands in a word for what only running the command could tell; no command line may hold it.
UNKNOWN: Final = "\0"
# Stands in a word for the path of the home folder, which nobody here knows.
HOME: Final = "\1"
# The name, in `Word.variables`, of what a command takes from its input or from the disk.
INPUT: Final = "<input>"
_HOME: Final = ("$HOME", "${HOME}")
_LITERAL: Final = frozenset(("word", "number", "variable_name", "test_operator"))
_UNQUOTED: Final = frozenset(("concatenation", "command_name"))
_QUOTED: Final = frozenset(("string", "heredoc_body"))
_NAMES: Final = frozenset(("variable_name", "special_variable_name", "subscript"))
_COMMANDS_INSIDE: Final = frozenset(("command_substitution", "process_substitution"))
# A command called so is none: the grammar and the shell disagree about where it begins.
_RESERVED: Final = frozenset(
    "! { } [[ ]] if then else elif fi for while until do done case esac select function in".split()  # noqa: SIM905
)
_GLOB: Final = re.compile(r"(?<!\\)[*?\[]")
_BRACES: Final = re.compile(r"\{[^{}]*(?:,|\.\.)[^{}]*\}")


class Word(NamedTuple):
    """`text` is what is left after quoting; `plain` when no pattern or list is to be expanded.

    `inside` are the commands whose output becomes part of the word, `variables` the names of
    variables whose content does, in order.
    """

    text: str
    plain: bool = True
    inside: "tuple[ShellStage, ...]" = ()
    variables: tuple[str, ...] = ()

    @property
    def known(self) -> bool:
        return self.plain and UNKNOWN not in self.text

    @property
    def shown(self) -> str:
        return self.text.replace(UNKNOWN, "…")


class ShellStage(NamedTuple):
    """One simple command: what it is called with, and where its input comes from.

    `piped` are the commands before it in its pipeline, `given` is the text of a here-document,
    `folder` is where an earlier `cd` of the same line went.
    """

    words: tuple[Word, ...]
    piped: "tuple[ShellStage, ...]" = ()
    given: Word | None = None
    folder: Word | None = None

    @property
    def name(self) -> str:
        """The program, without its folder."""
        return self.words[0].text.rpartition("/")[2] if self.words else ""

    @property
    def clear(self) -> bool:
        """Whether it is certain which program this is."""
        return self.words[0].known and self.words[0].text not in _RESERVED

    @property
    def text(self) -> str:
        return " ".join(word.shown for word in self.words)

    def started(self, words: tuple[Word, ...]) -> "ShellStage":
        """What this one starts in its own place."""
        return self._replace(words=words)


ANYTHING: Final = Word(UNKNOWN, plain=False, variables=(INPUT,))


def spelled(node: "Node", line: str, inside: tuple[ShellStage, ...] = ()) -> Word:
    """The word a node of this line spells."""
    text, bare = "".join(_pieces(node, line)), "".join(_bare(node, line))
    variables = tuple(expanded(node, line))
    if _BRACES.search(bare):
        return Word(UNKNOWN, False, inside, variables)
    if bare.startswith("~"):
        text = _from_home(text)
    return Word(text, not _GLOB.search(bare), inside, variables)


def expanded(node: "Node", line: str) -> Iterator[str]:
    """The names of the variables a node expands, without those of commands inside it."""
    if node.type in ("simple_expansion", "expansion"):
        name = next((each for each in node.named_children if each.type in _NAMES), None)
        if name is not None:
            yield source(name, line).partition("[")[0]
    if node.type not in _COMMANDS_INSIDE:
        for child in node.named_children:
            yield from expanded(child, line)


def source(node: "Node", line: str) -> str:
    """The text of a node; what was parsed has one byte for each character of the line."""
    return line[node.start_byte : node.end_byte]


def _pieces(node: "Node", line: str) -> Iterator[str]:
    """The texts a node stands for, in order."""
    raw = source(node, line)
    if node.type in _LITERAL or not node.is_named:
        yield re.sub(r"\\(.)", r"\1", raw)
    elif node.type == "raw_string":
        yield raw[1:-1]
    elif node.type == "ansi_c_string" and "\\" not in raw:
        yield raw[2:-1]
    elif node.type in _UNQUOTED:
        for part in node.children:
            yield from _pieces(part, line)
    elif node.type == "translated_string":
        yield from _pieces(node.named_children[0], line)
    elif node.type in _QUOTED:
        yield from _quoted(node, line)
    elif raw.strip() in _HOME:
        yield HOME
    else:
        yield UNKNOWN


def _quoted(node: "Node", line: str) -> Iterator[str]:
    """Expansions and what is between them; the grammar has no node for some of the blanks."""
    at = node.start_byte
    for part in node.named_children:
        if part.type in ("string_content", "heredoc_content"):
            continue
        text = source(part, line)
        yield _unescaped(line[at : part.end_byte - len(text.lstrip())])
        yield from _pieces(part, line)
        at = part.end_byte
    yield _unescaped(line[at : node.end_byte])


def _unescaped(text: str) -> str:
    return re.sub(r'\\([$`"\\])', r"\1", re.sub(r'(?<!\\)"', "", text))


def _bare(node: "Node", line: str) -> Iterator[str]:
    """What is not quoted; anything quoted stays as one harmless letter."""
    if node.type in _LITERAL or not node.is_named:
        yield source(node, line)
    elif node.type == "brace_expression":
        yield "{,}"
    elif node.type in _UNQUOTED:
        for part in node.children:
            yield from _bare(part, line)
    else:
        yield "q"


def _from_home(text: str) -> str:
    user, slash, rest = text.partition("/")
    return (HOME if user == "~" else UNKNOWN) + slash + rest
