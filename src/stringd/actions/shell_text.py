"""A CLI action's command line → a program for bash that no value can change.

Values never become program text. Each is handed to the shell in its environment, and the template
gets a reference to it, written so that the quotes around the hole stay balanced:

    bare      --name {x}       --name "${STRING_VALUE_1}"
    double    "Hi {x}!"        "Hi ${STRING_VALUE_1}!"
    single    'Hi {x}!'        'Hi '"${STRING_VALUE_1}"'!'

So the text bash parses depends on the author alone. Bash still evaluates some values as
expressions or commands (`$((…))`, `[[ … -eq … ]]`, subscripts, `eval`); there only a number fits.
The script of a nested `bash -c` is a template of its own: it reads the same environment.
"""

import re
from dataclasses import dataclass, field
from enum import Enum, auto
from typing import Final, NamedTuple

from stringd.actions.errors import payload_error
from stringd.actions.templates import ALL_ARGUMENTS, Hole, Inputs, Variable, hole_at

VALUE_PREFIX: Final = "STRING_VALUE_"
HOME_NAME: Final = "STRING_HOME"
ARGUMENTS_NAME: Final = "ARGS"

_NUMBER: Final = re.compile(r"-?\d+(\.\d+)?", re.ASCII)
_WORD_START: Final = frozenset(" \t\n;|&()")
_BRACED: Final = re.compile(r"([A-Za-z_]\w*)", re.ASCII)
_SUBSCRIPT: Final = re.compile(r"[A-Za-z_]\w*\[[^\]\s]*$", re.ASCII)
_ARITHMETIC_TEST: Final = re.compile(r"\[\[(?:(?!\]\]).)*\s-(?:eq|ne|lt|le|gt|ge|v)\s", re.DOTALL)
_EVALUATES: Final = re.compile(
    r"(?:^|[;&|({!`]|\b(?:then|do|else|time)\s)\s*"
    r"(?:\w+=\S*\s+|command\s+|builtin\s+|exec\s+)*"
    r"(?:eval|let|trap|unset|(?P<reads>read|mapfile|readarray)|"
    r"(?:declare|typeset|local|export)\s+-\w*[in]\w*|(?:test|\[)\s+-v|printf\s+-v)\s[^;&|]*$"
)
_HERE_STRING: Final = re.compile(r"<<<\s*(?:\"[^\"]*|'[^']*|[^\s\"']*)$")
_SHELL_SCRIPT: Final = re.compile(
    r"(?:^|[\s;&|(/])(?:ba|da|z|k|a)?sh\s+(?:-\S+\s+)*-[a-z]*c\s+\$?[\"']$"
)


class Quote(Enum):
    """What surrounds a position of a command line."""

    BARE = auto()
    DOUBLE = auto()
    SINGLE = auto()
    ANSI = auto()
    """`$'…'`"""
    EXPRESSION = auto()
    """`$((…))`, `${…}`: bash evaluates what stands here."""
    COMMENT = auto()


class ShellCommand(NamedTuple):
    """A program text and the variables it refers to."""

    text: str
    values: dict[str, str]
    """Environment variables that carry the call's values."""
    variables: frozenset[str]
    """Names of persistent and context variables the text mentions."""


def compose_command(template: str, inputs: Inputs, words: tuple[str, ...] = ()) -> ShellCommand:
    """Fill a command template. `words` are what `$ARGS` stands for. Raises `ActionError`."""
    composer = _Composer(inputs, words)
    text = composer.compose(template)
    return ShellCommand(text, composer.values, frozenset(composer.variables))


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
    values: dict[str, str] = field(default_factory=dict)
    variables: set[str] = field(default_factory=set)

    def compose(self, template: str) -> str:
        return _Walk(self, template).run()

    def reference(self, value: str) -> str:
        """A reference to a value in the shell's environment."""
        if "\0" in value:
            raise payload_error("A value contains a NUL character, which a command cannot take.")
        name = f"{VALUE_PREFIX}{len(self.values) + 1}"
        self.values[name] = value
        return f"${{{name}}}"


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
        else:
            self._copy(1)

    def _mention(self, position: int) -> None:
        name = _BRACED.match(self.template, position)
        if name is not None and self.composer.inputs.place.variable(name[1]) is not None:
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
            return self._words(inputs.take_all())
        value = None if hole.modifiers else inputs.take(hole)
        return None if value is None else self._value(hole, value)

    def _value(self, hole: Hole, value: str) -> str:
        if self._evaluated():
            if _NUMBER.fullmatch(value) is None:
                raise payload_error(
                    f"{hole.raw} stands where the shell evaluates it, so it must be a number; "
                    f'got "{value[:80]}".'
                )
            return value
        if self.quote is Quote.BARE and _NUMBER.fullmatch(value) and self._after(hole) not in "<>":
            # As it is: `{1..{n}}` must still count.
            return value
        return self._quoted(self.composer.reference(value))

    def _after(self, hole: Hole) -> str:
        return self.template[self.at + len(hole.raw) :][:1] or " "

    def _evaluated(self) -> bool:
        if any(level.quote is Quote.EXPRESSION for level in self.levels):
            return True
        before = self.template[: self.at]
        test = before.rfind("[[")
        if test >= 0 and "]]" not in before[test:]:
            rest = self.template[test:].partition("]]")[0]
            if _ARITHMETIC_TEST.match(rest + " "):
                return True
        if self.quote is Quote.BARE and _SUBSCRIPT.search(before):
            return True
        match = _EVALUATES.search(before)
        # What `read` is given to read is data; the names it reads into are not.
        return match is not None and not (match["reads"] and _HERE_STRING.search(before))

    def _quoted(self, reference: str) -> str:
        """A reference, written for the quotes that surround it."""
        script = self._script()
        if script is not None:
            return _inside_script(reference, script, double=self.quote is Quote.DOUBLE)
        if self.quote is Quote.DOUBLE:
            return reference
        if self.quote is Quote.SINGLE:
            return f"'\"{reference}\"'"
        if self.quote is Quote.ANSI:
            return f"'\"{reference}\"$'"
        return f'"{reference}"'

    def _script(self) -> str | None:
        """The part before the hole of a nested shell's script, if it stands in one."""
        if self.quote not in (Quote.DOUBLE, Quote.SINGLE):
            return None
        mark = '"' if self.quote is Quote.DOUBLE else "'"
        before = self.template[: self.at]
        for position, character in enumerate(before):
            opens = character == mark and _SHELL_SCRIPT.search(before[: position + 1])
            if opens and not _closes(before, position, mark):
                return before[position + 1 :]
        return None

    def _variable(self, variable: Variable) -> str | None:
        inputs = self.composer.inputs
        if variable.name == ARGUMENTS_NAME and self.quote is Quote.BARE:
            return self._words(list(self.composer.words))
        known = inputs.place.variable(variable.name)
        if known is None:
            return None
        self.composer.variables.add(variable.name)
        name = HOME_NAME if variable.name == "HOME" else variable.name
        if self.quote is Quote.SINGLE:
            return f"'\"${{{name}}}\"'"
        if self.quote is Quote.ANSI:
            return f"'\"${{{name}}}\"$'"
        # Context variables are paths and names: one word each, spaces or not.
        if self.quote is Quote.BARE and variable.name in inputs.place.context:
            return f'"${{{name}}}"'
        return f"${{{name}}}"

    def _words(self, words: list[str]) -> str:
        """Separate words where the shell splits, one text where it does not."""
        if self.quote is not Quote.BARE or self._evaluated():
            return self._value(Hole("{...args}", ALL_ARGUMENTS), " ".join(words)) if words else ""
        return " ".join(f'"{self.composer.reference(word)}"' for word in words)


def _closes(text: str, position: int, mark: str) -> bool:
    """Whether the quote opened at `position` ends before the end of `text`."""
    at = position + 1
    while at < len(text):
        if text[at] == "\\" and mark == '"':
            at += 1
        elif text[at] == mark:
            return True
        at += 1
    return False


def _inside_script(reference: str, script: str, *, double: bool) -> str:
    """A reference for the quotes of the inner script, escaped for the outer ones."""
    if not double:
        # Outer single quotes: the inner script sees the text as it is.
        inside = script.replace('\\"', "").count('"') % 2
        return reference if inside else f'"{reference}"'
    escaped = f"\\{reference}"
    if script.count("'") % 2:
        return f"'\\\"{escaped}\\\"'"
    return escaped if script.count('\\"') % 2 else f'\\"{escaped}\\"'
