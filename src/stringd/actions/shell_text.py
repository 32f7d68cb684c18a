"""A CLI action's command line → a program for bash that no value can change.

Values never become program text. Each is handed to the shell in its environment, and the template
gets a reference to it, written so that the quotes around the hole stay balanced:

    bare      --name {x}       --name "${STRING_VALUE_1}"
    double    "Hi {x}!"        "Hi ${STRING_VALUE_1}!"
    single    'Hi {x}!'        'Hi '"${STRING_VALUE_1}"'!'

So the text bash parses depends on the author alone. A number, or one of the values that an author
listed, is written as it is. Whether a reference may be where it is, `holes` decides.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple

from stringd.actions.binding import fits_type
from stringd.actions.errors import payload_error
from stringd.actions.holes.sources import VALUE_PREFIX, Source, ValueOrigin
from stringd.actions.templates import ALL_ARGUMENTS, Hole, Inputs, Variable, hole_at
from stringd.documents import Field

HOME_NAME: Final = "STRING_HOME"
ARGUMENTS_NAME: Final = "ARGS"

_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
# Means the same in quotes of any kind, and without them.
_PLAIN: Final = re.compile(r"[\w.,:@%/+=-]+", re.ASCII)
_WORD_START: Final = frozenset(" \t\n;|&()")
_BRACED: Final = re.compile(r"([A-Za-z_]\w*)", re.ASCII)


class Quote(Enum):
    """What surrounds a position of a command line."""

    BARE = auto()
    DOUBLE = auto()
    SINGLE = auto()
    ANSI = auto()
    """`$'…'`"""
    EXPRESSION = auto()
    """`$((…))`, `${…}`."""
    COMMENT = auto()


class ComposedCommand(NamedTuple):
    """A program text and the variables it refers to."""

    text: str
    values: dict[str, str]
    """Environment variables that carry the call's values."""
    variables: frozenset[str]
    """Names of persistent and context variables the text mentions."""
    sources: dict[str, Source]
    """Where the content of every variable comes from that a value or a `$NAME` can be in."""


def compose_command(
    template: str,
    inputs: Inputs,
    words: tuple[str, ...] = (),
    fields: Iterable[Field] = (),
) -> ComposedCommand:
    """Fill a command template. `words` are what `$ARGS` stands for. Raises `ActionError`."""
    composer = _Composer(inputs, words, {each.name: each for each in fields})
    text = composer.compose(template)
    return ComposedCommand(
        text,
        composer.values,
        frozenset(composer.variables),
        {**composer.named(), **composer.sources},
    )


@dataclass
class _Level:
    """One level of nesting: its quoting and the character that ends it."""

    quote: Quote
    closer: str
    depth: int = 0


@dataclass
class _Composer:
    inputs: Inputs
    words: tuple[str, ...]
    fields: Mapping[str, Field]
    values: dict[str, str] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)
    sources: dict[str, Source] = field(default_factory=dict)

    def compose(self, template: str) -> str:
        return _Walk(self, template).run()

    def reference(self, value: str, source: Source) -> str:
        """A reference to a value in the shell's environment."""
        if "\0" in value:
            raise payload_error("A value contains a NUL character, which a command cannot take.")
        name = f"{VALUE_PREFIX}{len(self.values) + 1}"
        self.values[name] = value
        self.sources[name] = source
        return f"${{{name}}}"

    def named(self) -> dict[str, Source]:
        """The `$NAMES` a command finds in its environment."""
        place = self.inputs.place
        found = {name: Source(f"${name}", ValueOrigin.PLACE) for name in place.names.context}
        found |= {
            name: Source(f"${name}", ValueOrigin.OWNER)
            for name in place.names.stored
            if name in self.variables | place.names.declared and name not in found
        }
        if "HOME" in found:
            found[HOME_NAME] = found.pop("HOME")
        if ARGUMENTS_NAME in found:
            found[ARGUMENTS_NAME] = _ARGUMENTS
        return found


_ARGUMENTS: Final = Source(f"${ARGUMENTS_NAME}", ValueOrigin.CALLER, options=True)


class _Walk:
    """One pass over a template: copies the author's text, fills its holes."""

    def __init__(self, composer: _Composer, template: str) -> None:
        self.composer = composer
        self.template = template
        self.levels = [_Level(Quote.BARE, "")]
        self.out: list[str] = []
        self.at = 0

    @property
    def quote(self) -> Quote:
        return self.levels[-1].quote

    def run(self) -> str:
        while self.at < len(self.template):
            self._step(self.template[self.at])
        return "".join(self.out)

    def _step(self, character: str) -> None:
        quote = self.quote
        if quote is Quote.COMMENT:
            self._copy(1)
            if character == "\n":
                self.levels.pop()
        elif character == "\\" and quote is not Quote.SINGLE:
            # Escaped: neither a quote nor a hole begins here.
            self._copy(2)
        elif character in "{$" and self._fill():
            return
        elif quote in (Quote.SINGLE, Quote.ANSI):
            self._copy(1)
            if character == "'":
                self.levels.pop()
        elif character == "$":
            self._dollar()
        elif quote is Quote.EXPRESSION:
            self._expression(character)
        elif quote is Quote.DOUBLE:
            self._double(character)
        else:
            self._bare(character)

    def _copy(self, count: int) -> None:
        self.out.append(self.template[self.at : self.at + count])
        self.at += count

    def _enter(self, count: int, quote: Quote, closer: str) -> None:
        self._copy(count)
        self.levels.append(_Level(quote, closer))

    def _next(self, count: int = 1) -> str:
        return self.template[self.at + 1 : self.at + 1 + count]

    def _dollar(self) -> None:
        if self._next(2) == "((":
            self._enter(3, Quote.EXPRESSION, ")")
            self.levels[-1].depth = 1
        elif self._next() == "(":
            self._enter(2, Quote.BARE, ")")
        elif self._next() == "{":
            self._mention(self.at + 2)
            self._enter(2, Quote.EXPRESSION, "}")
        elif self._next() == "[":
            self._enter(2, Quote.EXPRESSION, "]")
        elif self._next() == "'" and self.quote is Quote.BARE:
            self._enter(2, Quote.ANSI, "'")
        elif self._next() == '"' and self.quote is Quote.BARE:
            # Nothing translates an action's text, so these are plain double quotes.
            self.at += 1
        else:
            self._copy(1)

    def _mention(self, position: int) -> None:
        name = _BRACED.match(self.template, position)
        if name is not None and self.composer.inputs.place.names.variable(name[1]) is not None:
            self.composer.variables.add(name[1])

    def _expression(self, character: str) -> None:
        level = self.levels[-1]
        opener = {")": "(", "}": "{", "]": "["}[level.closer]
        self._copy(1)
        if character == opener:
            level.depth += 1
        elif character == level.closer:
            if level.depth == 0:
                self.levels.pop()
            level.depth -= 1

    def _double(self, character: str) -> None:
        if character == "`":
            self._backquote()
        else:
            self._copy(1)
            if character == '"':
                self.levels.pop()

    def _bare(self, character: str) -> None:
        level = self.levels[-1]
        if character == "'":
            self._enter(1, Quote.SINGLE, "'")
        elif character == '"':
            self._enter(1, Quote.DOUBLE, '"')
        elif character == "`":
            self._backquote()
        elif character == "#" and self._begins_word():
            self._enter(1, Quote.COMMENT, "\n")
        elif character == "(" and self._next() == "(":
            self._enter(2, Quote.EXPRESSION, ")")
            self.levels[-1].depth = 1
        elif character == "(":
            self._enter(1, Quote.BARE, ")")
        else:
            self._copy(1)
            if character == level.closer and len(self.levels) > 1:
                self.levels.pop()

    def _backquote(self) -> None:
        if self.levels[-1].closer == "`":
            self._copy(1)
            self.levels.pop()
        else:
            self._enter(1, Quote.BARE, "`")

    def _begins_word(self) -> bool:
        return self.at == 0 or self.template[self.at - 1] in _WORD_START

    def _fill(self) -> bool:
        """Replace the hole that begins here, if one does and something fills it."""
        hole = hole_at(self.template, self.at)
        if hole is None:
            return False
        filled = self._variable(hole) if isinstance(hole, Variable) else self._hole(hole)
        if filled is None:
            return False
        self.out.append(filled)
        self.at += len(hole.raw)
        return True

    def _hole(self, hole: Hole) -> str | None:
        inputs = self.composer.inputs
        if hole.name == ALL_ARGUMENTS:
            source = Source(hole.raw, ValueOrigin.CALLER, options=True)
            return self._words(inputs.take_all(), source)
        value = None if hole.modifiers else inputs.take(hole)
        return None if value is None else self._value(hole, value)

    def _value(self, hole: Hole, value: str) -> str:
        declared = self.composer.fields.get(hole.name)
        if declared is not None and fits_type(declared, value) and _PLAIN.fullmatch(value):
            touches = self.quote is Quote.BARE and self._after(hole) in "<>"
            return f'"{value}"' if touches else value
        if self.quote is Quote.BARE and _NUMBER.fullmatch(value) and self._after(hole) not in "<>":
            # As it is: `{1..{n}}` must still count.
            return value
        dash, code = (declared.dash, declared.code) if declared else (False, False)
        return self._quoted(
            self.composer.reference(value, Source(hole.raw, ValueOrigin.CALLER, dash, code))
        )

    def _after(self, hole: Hole) -> str:
        return self.template[self.at + len(hole.raw) :][:1] or " "

    def _quoted(self, reference: str) -> str:
        """A reference, written for the quotes that surround it."""
        if self.quote is Quote.SINGLE:
            return f"'\"{reference}\"'"
        if self.quote is Quote.ANSI:
            return f"'\"{reference}\"$'"
        return f'"{reference}"' if self.quote is Quote.BARE else reference

    def _variable(self, variable: Variable) -> str | None:
        inputs = self.composer.inputs
        if variable.name == ARGUMENTS_NAME and self.quote is Quote.BARE:
            return self._words(list(self.composer.words), _ARGUMENTS)
        known = inputs.place.names.variable(variable.name)
        if known is None:
            return None
        self.composer.variables.add(variable.name)
        name = HOME_NAME if variable.name == "HOME" else variable.name
        if self.quote in (Quote.SINGLE, Quote.ANSI):
            return self._quoted(f"${{{name}}}")
        # Context variables are paths and names: one word each, spaces or not.
        if self.quote is Quote.BARE and variable.name in inputs.place.names.context:
            return f'"${{{name}}}"'
        return f"${{{name}}}"

    def _words(self, words: list[str], source: Source) -> str:
        """Separate words where the shell splits, one text where it does not."""
        if self.quote is not Quote.BARE:
            joined = " ".join(words)
            return self._quoted(self.composer.reference(joined, source)) if words else ""
        return " ".join(f'"{self.composer.reference(word, source)}"' for word in words)
