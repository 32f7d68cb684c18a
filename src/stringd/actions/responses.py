"""Running a response template over an answer."""

import asyncio
import base64
import binascii
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from stringd.actions.data import MISSING, Step, shown, split_text, steps, walk
from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext, Value, text_of
from stringd.actions.program import (
    Assign,
    Decode,
    Expression,
    Line,
    Loop,
    Print,
    Program,
    Reference,
    Remember,
    Save,
    ShortcutName,
    Write,
    compile_template,
)
from stringd.actions.secrets import Mask

# Two nested loops over a large answer must not fill the memory, nor take for ever.
MAX_OUTPUT_CHARACTERS: Final = 4 * 1024 * 1024
MAX_LINES: Final = 200_000
LARGE_TEMPLATE: Final = 16 * 1024
# Others get their turn between so many lines.
_LINES_PER_TURN: Final = 256
# Splitting this much again costs less than remembering it.
_SMALL_TEXT: Final = 1000
_NO_BUFFER: Final = "no current buffer (was save: skipped or missing?)"
_CONTEXT_VARIABLE: Final = re.compile(r"\$([A-Za-z_]\w*)", re.ASCII)


@dataclass(frozen=True)
class ActionAnswer:
    """What a template sees as `Response`, and the bytes it came as."""

    fields: Mapping[str, Any]
    """`status`, `body`; for commands also `exit_code`, `stdout`, `stderr`."""
    data: bytes = b""


@dataclass
class TemplateRun:
    """One evaluation; variables and shortcuts land in the place it was called from."""

    answer: ActionAnswer
    inputs: Mapping[str, Value]
    place: ActionContext
    mask: Mask
    lines: list[str] = field(default_factory=list)
    unresolved: dict[str, None] = field(default_factory=dict)
    """References that led nowhere and are left in the text."""
    empty: dict[str, None] = field(default_factory=dict)
    """References that led nowhere in what was to be remembered."""
    not_lists: dict[str, str] = field(default_factory=dict)
    """What loops should have gone through, and what it is instead."""
    short: dict[str, int] = field(default_factory=dict)
    """References to a part of an input that it does not have, and how many it has."""
    pieces: dict[tuple[int, str], tuple[str, Any]] = field(default_factory=dict)
    """Large texts that were split."""
    write_failed: bool = False
    """Whether the last `to:` wrote nothing."""
    saved: list[str] = field(default_factory=list)
    """Files that were written under names that do not say where."""
    counters: dict[str, int] = field(default_factory=dict)
    newest: dict[str, str] = field(default_factory=dict)
    buffer: bytes | None = None
    size: int = 0
    lines_run: int = 0

    async def run(self, template: str) -> str:
        """The output text, with notices about files written and references that led nowhere."""
        if len(template) > LARGE_TEMPLATE:
            program = await asyncio.to_thread(compile_template, template)
        else:
            program = compile_template(template)
        await self._block(program, {}, in_loop=False)
        if self.lines_run > MAX_LINES:
            self.lines.append(f"> ⚠️ The template was stopped after {MAX_LINES} lines.")
        text = self.mask("\n".join(self.lines)).rstrip()
        saved = "\n".join(f"Saved: {path}" for path in self.saved if path not in text)
        return "\n\n".join(filter(None, (text, saved, *self._notices())))

    def _notices(self) -> Iterator[str]:
        if self.unresolved:
            yield self._notice(self.unresolved, "Left visible above instead of rendering blank.")
        if self.empty:
            yield self._notice(self.empty, "Assigned as empty text.")
        for path, kind in self.not_lists.items():
            lines = f" {path}.lines goes through its lines." if kind == "text" else ""
            yield f"> ⚠️ for: … in {path} repeated nothing: it is {kind}, not a list.{lines}"
        for raw, count in self.short.items():
            yield f"> ⚠️ {raw} is empty: the value has {count} part{'' if count == 1 else 's'}."

    def _notice(self, references: Iterable[str], what_happened: str) -> str:
        named = list(references)
        noun = "reference" if len(named) == 1 else "references"
        exposed = ", ".join(self.answer.fields)
        return (
            f"> ⚠️ Unresolved template {noun}: {', '.join(named)}\n"
            f"> This response exposes: {exposed} (with nested JSON reachable under body). "
            f"{what_happened}"
        )

    async def _block(self, program: Program, items: dict[str, Any], *, in_loop: bool) -> None:
        for line in program:
            if self.size > MAX_OUTPUT_CHARACTERS or self.lines_run > MAX_LINES:
                return
            self.lines_run += 1
            if self.lines_run % _LINES_PER_TURN == 0:
                await asyncio.sleep(0)
            await self._line(line, items, in_loop=in_loop)

    async def _line(self, line: Line, items: dict[str, Any], *, in_loop: bool) -> None:
        match line:
            case Print() if self.write_failed:
                # The author's words for what was written would not be true.
                pass
            case Print():
                self._print(self._text(line.text, items, printed=True))
            case Assign():
                value = self._text(line.value, items)
                self.place.names.session[line.name] = self.mask(value)
            case Remember():
                self._remember(line, items, in_loop=in_loop)
            case Loop():
                found = self._array(line.path, items)
                if isinstance(found, str | bool | int | float | dict):
                    self.not_lists[".".join(map(str, line.path))] = _kind(found)
                for item in found if isinstance(found, list) and line.body else ():
                    await self._block(line.body, {**items, line.variable: item}, in_loop=True)
            case Save():
                self._save(line.typed)
            case Decode():
                self._decode(line.encoding)
            case Write():
                await self._write(self._text(line.path, items))

    def _print(self, text: str) -> None:
        self.size += len(text) + 1
        self.lines.append(text)

    def _text(self, parts: Expression, items: dict[str, Any], *, printed: bool = False) -> str:
        return "".join(
            part if isinstance(part, str) else self._filled(part, items, printed=printed)
            for part in parts
        )

    def _filled(
        self, part: Reference | ShortcutName, items: dict[str, Any], *, printed: bool
    ) -> str:
        if isinstance(part, ShortcutName):
            return f"@{self.newest.get(part.name, part.name)}"
        if part.root in items:
            return shown(self._walk(items[part.root], part.path[1:]))
        if part.root == "Response" and len(part.path) > 1:
            found = self._walk(self.answer.fields, part.path[1:])
            if found is MISSING:
                (self.unresolved if printed else self.empty)[part.raw] = None
            return part.raw if found is MISSING and printed else shown(found)
        return self._named(part)

    def _named(self, part: Reference) -> str:
        """`{name}`, `{name[0]}`, `{name.lines}`: input first, then session variables, else as
        written."""
        index = part.path[1] if len(part.path) == 2 else None
        value = self.inputs.get(part.root)
        if value is not None and (index is None or isinstance(index, int)) and len(part.path) <= 2:
            held = len(value) if isinstance(value, tuple) else 1
            if index is not None and index >= held:
                self.short[part.raw] = held
            return text_of(value, index)
        known = value if value is not None else self.place.names.session.get(part.root)
        if len(part.path) == 1 or known is None or isinstance(index, int):
            return part.raw if known is None or index is not None else text_of(known)
        found = self._walk(list(known) if isinstance(known, tuple) else known, part.path[1:])
        return part.raw if found is MISSING else shown(found)

    def _array(self, path: tuple[Step, ...], items: dict[str, Any]) -> Any:
        first, *rest = path
        if first in items:
            return self._walk(items[str(first)], rest)
        if first == "Response":
            return self._walk(self.answer.fields, rest)
        within = self._walk(self.answer.fields.get("body"), path)
        found = self._walk(self.answer.fields, path) if within is MISSING else within
        given = self.inputs.get(str(first))
        if found is MISSING and given is not None:
            return self._walk(list(given) if isinstance(given, tuple) else given, rest)
        return found

    def _walk(self, value: Any, path: Sequence[Step]) -> Any:
        return walk(value, list(path), self._split)

    def _split(self, text: str, how: str) -> Any:
        """A large text is split once, however often a loop asks for it."""
        if len(text) < _SMALL_TEXT:
            return split_text(text, how)
        key = (id(text), how)
        if key not in self.pieces:
            # The text is kept, so that no other one gets its id.
            self.pieces[key] = (text, split_text(text, how))
        return self.pieces[key][1]

    def _remember(self, line: Remember, items: dict[str, Any], *, in_loop: bool) -> None:
        held = self.place.topic.value_shortcuts
        if line.name not in self.counters:
            self.counters[line.name] = 0
            old = re.compile(rf"{re.escape(line.name)}(-\d+)?")
            for slug in [each for each in held if old.fullmatch(each)]:
                del held[slug]
        slug = line.name
        if in_loop:
            self.counters[line.name] += 1
            slug = f"{line.name}-{self.counters[line.name]}"
        parts = tuple(self.mask(self._text(part, items).removeprefix("@")) for part in line.parts)
        held[slug] = parts if len(parts) > 1 else parts[0]
        self.newest[line.name] = slug

    def _save(self, typed: str) -> None:
        path = steps(typed.removeprefix("{").removesuffix("}"))
        if path is None:
            self._print(f"save: path returned no value: {typed}")
            return
        if path in (["Response", "body"], ["body"]):
            self.buffer = self.answer.data
            return
        inside = self.answer.fields.get("body")
        fields = self.answer.fields
        found = self._walk(fields, path[1:]) if path[0] == "Response" else self._walk(inside, path)
        if found is None or found is MISSING:
            self.buffer = None
            self._print(f"save: path returned no value: {typed}")
        else:
            self.buffer = shown(found).encode("utf-8", "surrogateescape")

    def _decode(self, encoding: str) -> None:
        if encoding not in ("base64", "none"):
            self._print(f'decode: unknown encoding "{encoding}" (supported: base64, none)')
        elif self.buffer is None:
            self._print(f"decode: {_NO_BUFFER}")
        elif encoding == "base64":
            try:
                self.buffer = base64.b64decode(b"".join(self.buffer.split()), validate=True)
            except binascii.Error as error:
                self.buffer = None
                self._print(f"decode: not base64: {error}")

    async def _write(self, path: str) -> None:
        if self.buffer is None:
            self._print(f"to: {_NO_BUFFER}")
            return
        known = self.place.names.context
        path = _CONTEXT_VARIABLE.sub(lambda match: known.get(match[1], match[0]), path)
        try:
            written = await self.place.topic.write_file(path, self.buffer)
        except ActionError as error:
            self._print(f"to: write failed: {error.message}")
            self.write_failed = True
            return
        self.write_failed = False
        if not path.startswith("/"):
            self.saved.append(written)


def _kind(value: str | float | dict[str, Any]) -> str:
    if isinstance(value, dict):
        return "an object"
    return "text" if isinstance(value, str) else "a single value"
