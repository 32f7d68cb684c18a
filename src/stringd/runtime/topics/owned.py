"""Values that belong to whoever left them: what an app's answer set, no other page sees."""

from collections.abc import Iterator, MutableMapping
from typing import TypeVar

from stringd.actions.provenance import USER

Value = TypeVar("Value")


class OwnedValues(MutableMapping[str, Value]):
    """The values of a topic as the pages of one owner see them.

    What the caller set has no owner and is everybody's. The user's own pages see everything.
    """

    def __init__(self, values: dict[str, Value], owners: dict[str, str], viewer: str) -> None:
        self._values = values
        self._owners = owners
        self._viewer = viewer

    def __getitem__(self, name: str) -> Value:
        if not self._visible(name):
            raise KeyError(name)
        return self._values[name]

    def __setitem__(self, name: str, value: Value) -> None:
        self._values[name] = value
        self._owners[name] = self._viewer

    def __delitem__(self, name: str) -> None:
        if not self._visible(name):
            raise KeyError(name)
        del self._values[name]
        self._owners.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return (name for name in list(self._values) if self._visible(name))

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def _visible(self, name: str) -> bool:
        whose = self._owners.get(name)
        return name in self._values and (whose in (None, self._viewer) or self._viewer == USER)
