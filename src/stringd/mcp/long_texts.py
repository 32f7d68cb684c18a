"""Texts too long for one reply: a caller gets the beginning and the end, and reads on by handle."""

from collections import OrderedDict
from secrets import token_hex
from typing import Final, NamedTuple

from stringd.mcp.outcome import ToolError, ToolOutcome, said

PREFIX: Final = "text-"
MAX_CHARACTERS: Final = 40_000
"""Of one reply: clients refuse, or keep from their model, what is much longer."""
_PART: Final = MAX_CHARACTERS - 1000
MAX_KEPT_CHARACTERS: Final = 16 * 1024 * 1024
"""Of all texts that can still be read on; past it the oldest are forgotten."""


class _Kept(NamedTuple):
    user_id: str
    text: str
    position: int
    end: int


class LongTexts:
    """What was left out of replies, by handle."""

    def __init__(self) -> None:
        self._kept: OrderedDict[str, _Kept] = OrderedDict()
        self._size = 0

    def shorten(self, user_id: str, outcome: ToolOutcome) -> ToolOutcome:
        """An outcome of a bearable size."""
        if all(len(part) <= MAX_CHARACTERS for part in outcome.parts):
            return outcome
        return outcome._replace(parts=tuple(self._shorten(user_id, part) for part in outcome.parts))

    def read_on(self, user_id: str, handle: str) -> ToolOutcome:
        """The next part of what was left out. Raises `ToolError`."""
        kept = self._kept.pop(handle, None)
        if kept is None or kept.user_id != user_id:
            raise ToolError(
                f"Nothing more is kept under the handle {handle}: it was read already or forgotten."
                " Run the command again, or ask for a smaller part."
            )
        self._size -= len(kept.text)
        position = _line_end(kept.text, kept.position + _PART, kept.end)
        part = kept.text[kept.position : position]
        if position >= kept.end:
            return said(f"{part}\n[This was the last part that was left out.]")
        left = kept.end - position
        note = self._note(left, self._keep(kept._replace(position=position)))
        return said(f"{part}\n{note}")

    def _shorten(self, user_id: str, text: str) -> str:
        if len(text) <= MAX_CHARACTERS:
            return text
        start = _line_end(text, MAX_CHARACTERS * 3 // 4, len(text))
        end = _line_end(text, len(text) - MAX_CHARACTERS // 5, len(text))
        if len(text) > MAX_KEPT_CHARACTERS:
            note = f"[… {end - start} characters left out here; ask for a smaller part …]"
        else:
            note = self._note(end - start, self._keep(_Kept(user_id, text, start, end)))
        return f"{text[:start]}\n{note}\n{text[end:]}"

    def _keep(self, kept: _Kept) -> str:
        handle = f"{PREFIX}{token_hex(6)}"
        self._kept[handle] = kept
        self._size += len(kept.text)
        while self._size > MAX_KEPT_CHARACTERS:
            _, oldest = self._kept.popitem(last=False)
            self._size -= len(oldest.text)
        return handle

    @staticmethod
    def _note(count: int, handle: str) -> str:
        return (
            f"[… {count} characters left out here; to read on, call wait with handle "
            f'"{handle}", or ask for a smaller part (/outline, /find, #block, :L1-L50) …]'
        )


def _line_end(text: str, wanted: int, end: int) -> int:
    """Where to cut: after the last line that fits, unless lines are very long."""
    if wanted >= end:
        return end
    cut = text.rfind("\n", wanted - MAX_CHARACTERS // 50, wanted) + 1
    return cut or wanted
