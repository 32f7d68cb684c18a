"""Tool calls of an OpenAI-compatible stream, put together from pieces.

Servers differ in how they say which call a piece belongs to: by index, by id, by both, by neither,
or wrongly. A piece begins a new call when it could not continue the one it points to.
"""

from typing import Any
from uuid import uuid4

import msgspec

from stringd.formats.surrogates import paired
from stringd.runs.models.port import ToolRequested


class _Pending:
    """A call whose pieces are arriving."""

    def __init__(self, call_id: str) -> None:
        self.id = call_id
        self.name = ""
        self.args: list[str] = []

    def has_all(self) -> bool:
        """Whether the arguments are a whole object, so that nothing can follow."""
        text = "".join(self.args).strip()
        if not (text.startswith("{") and text.endswith("}")):
            return False
        try:
            msgspec.json.decode(text)
        except msgspec.DecodeError:
            return False
        return True


class PendingCalls:
    """The calls of one answer, in the order they were begun."""

    def __init__(self) -> None:
        self._calls: list[_Pending] = []
        self._by_index: dict[int, _Pending] = {}
        self._by_id: dict[str, _Pending] = {}

    def __bool__(self) -> bool:
        return bool(self._calls)

    def take(self, piece: Any) -> None:
        """One member of `tool_calls`."""
        if not isinstance(piece, dict):
            return
        given = piece.get("function")
        function: dict[str, Any] = given if isinstance(given, dict) else {}
        index, call_id, name = piece.get("index"), piece.get("id"), function.get("name")
        self._add(
            index if isinstance(index, int) else None,
            str(call_id) if call_id else "",
            name if isinstance(name, str) else "",
            _text(function.get("arguments")),
        )

    def _add(self, index: int | None, call_id: str, name: str, args: str) -> None:
        call = self._meant(index, call_id)
        if call is None or _is_another(call, call_id, name, args):
            call = _Pending(call_id)
            self._calls.append(call)
        if index is not None:
            self._by_index[index] = call
        if call_id:
            self._by_id[call_id] = call
            call.id = call.id or call_id
        if name and name != call.name and not call.args:
            call.name += name
        if args:
            call.args.append(args)

    def _meant(self, index: int | None, call_id: str) -> _Pending | None:
        """The call a piece points to."""
        if index is not None:
            return self._by_index.get(index)
        if call_id:
            return self._by_id.get(call_id)
        return self._calls[-1] if self._calls else None

    def requested(self) -> list[ToolRequested]:
        """The calls, each with an id of its own."""
        seen: set[str] = set()
        found = []
        for call in self._calls:
            if not (call.name or call.args):
                continue
            name = paired(call.name)
            call_id = own_id(paired(call.id), seen)
            found.append(ToolRequested(call_id, name, paired("".join(call.args))))
        return found


def _is_another(call: _Pending, call_id: str, name: str, args: str) -> bool:
    if not name:
        # Some servers give every piece an id of its own; only a name begins a call.
        return False
    if call_id and call.id and call_id != call.id:
        return True
    if not call.args or not call.has_all():
        return False
    return name != call.name or bool(args.strip()) or not call_id


def own_id(call_id: str, seen: set[str]) -> str:
    """The id, or another one where it is missing or taken."""
    while not call_id or call_id in seen:
        call_id = f"call_{uuid4().hex[:24]}"
    seen.add(call_id)
    return call_id


def _text(arguments: Any) -> str:
    """Arguments as JSON text; some servers send the object itself."""
    if isinstance(arguments, str):
        return arguments
    return "" if arguments is None else msgspec.json.encode(arguments).decode()
