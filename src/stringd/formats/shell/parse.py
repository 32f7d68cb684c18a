"""A command line taken apart into its simple commands.

What cannot be read with certainty is a doubt. Whoever judges the line must not take it for
understood then.
"""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from stringd.formats.shell import grammar
from stringd.formats.shell.words import HOME, ShellStage, Word, source, spelled

if TYPE_CHECKING:
    from tree_sitter import Node

_FOLDER_CHANGES: Final = frozenset(("cd", "pushd"))


@dataclass
class Reading:
    """Every simple command of a line, in order, and what could not be read."""

    stages: list[ShellStage] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)
    bomb: bool = False

    def doubt(self, why: str) -> None:
        if why not in self.doubts:
            self.doubts.append(why)


def read(line: str, within: ShellStage | None = None) -> Reading:
    """Take a line apart; `within` is the command that runs it."""
    reader = _ShellReader(line, within.folder if within else None)
    try:
        # Only a line put together here may hold the mark of the home folder.
        root = grammar.parse(line if within else line.replace(HOME, "\0"))
    except grammar.UnreadableError as error:
        reader.found.doubt(str(error))
        return reader.found
    for begin, end in (*grammar.left_out(root), (root.end_byte, len(line))):
        if line[begin:end].strip():
            reader.unreadable(line[begin:end])
    reader.walk(root, _Place(within.piped, within.given) if within else _Place())
    return reader.found


@dataclass(frozen=True)
class _Place:
    """Around a command: what is piped or given to it, and words behind its redirections."""

    piped: tuple[ShellStage, ...] = ()
    given: Word | None = None
    more: "tuple[Node, ...]" = ()


class _ShellReader:
    def __init__(self, line: str, folder: Word | None = None) -> None:
        self.found = Reading()
        self._line = line
        self._folder = folder

    def walk(self, node: "Node", place: _Place) -> tuple[ShellStage, ...]:
        """Collect the commands of a node; returns those that were found in it."""
        before = len(self.found.stages)
        if grammar.is_odd(node):
            self.unreadable(self._text(node))
        match node.type:
            case "command":
                self._command(node, place)
            case "pipeline":
                self._pipeline(node, place)
            case "redirected_statement":
                self._redirected(node, place)
            case "function_definition":
                self._function(node, place)
            case _:
                for child in node.children:
                    self.walk(child, place)
        return tuple(self.found.stages[before:])

    def unreadable(self, text: str) -> None:
        self.found.doubt(f"this part of it cannot be read: {_cut(text)}")

    def _text(self, node: "Node") -> str:
        return source(node, self._line)

    def _pipeline(self, node: "Node", place: _Place) -> None:
        piped = place.piped
        for part in node.children:
            piped += self.walk(part, _Place(piped, place.given))

    def _redirected(self, node: "Node", place: _Place) -> None:
        redirects = node.children_by_field_name("redirect")
        given = next((text for each in redirects if (text := self._given(each))), place.given)
        bodies = [child for child in node.children if child not in redirects]
        more = tuple(word for redirect in redirects for word in grammar.behind(redirect))
        if more and [body.type for body in bodies] != ["command"]:
            self.unreadable(self._text(more[0]))
        found: tuple[ShellStage, ...] = ()
        for body in bodies:
            found += self.walk(body, _Place(place.piped, given, more))
        for redirect in redirects:
            # What follows a here-document on its line hangs below it: cat <<X | sh
            self.walk(redirect, _Place(place.piped + found))

    def _given(self, redirect: "Node") -> Word | None:
        """The text a redirection feeds to a command; nothing is known of a file's."""
        parts = {child.type: child for child in redirect.named_children}
        if redirect.type == "herestring_redirect":
            return self._word(redirect.named_children[-1])
        if redirect.type == "file_redirect" and "process_substitution" in parts:
            return self._word(parts["process_substitution"])
        body = parts.get("heredoc_body")
        if redirect.type != "heredoc_redirect" or body is None:
            return None
        quoted = set(self._text(parts["heredoc_start"])) & grammar.QUOTES
        return Word(self._text(body)) if quoted else self._word(body)

    def _word(self, node: "Node") -> Word:
        """A word whose own commands are collected elsewhere."""
        inside = _ShellReader(self._line).walk(node, _Place())
        return spelled(node, self._line, inside)

    def _function(self, node: "Node", place: _Place) -> None:
        name = self._text(node.named_children[0])
        found: tuple[ShellStage, ...] = ()
        for child in node.named_children[1:]:
            found += self.walk(child, place)
        again = [stage for stage in found if stage.name == name]
        if len(again) > 1 and (any(stage.piped for stage in again) or "&" in self._text(node)):
            self.found.bomb = True

    def _command(self, node: "Node", place: _Place) -> None:
        words: list[Word] = []
        given = place.given
        for child in (*node.children, *place.more):
            inside = self.walk(child, _Place(place.piped))
            if child.type.endswith("_redirect"):
                given = self._given(child) or given
            elif child.type != "variable_assignment":
                words.append(spelled(child, self._line, inside))
        if not words:
            return
        stage = ShellStage(tuple(words), place.piped, given, self._folder)
        self.found.stages.append(stage)
        if not stage.clear:
            self.found.doubt(f"what {_cut(self._text(node))} runs is known only when it runs")
        if stage.name in _FOLDER_CHANGES:
            self._folder = words[-1] if len(words) > 1 else Word(HOME)


def _cut(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= 80 else text[:79] + "…"
