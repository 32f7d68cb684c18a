"""The to-do list of a run."""

from typing import NamedTuple

from stringd.runs.tools.output import ToolFailure, ToolOutput


class Todo(NamedTuple):
    id: int
    content: str
    done: bool = False

    def line(self) -> str:
        return f"[{'x' if self.done else ' '}] #{self.id}: {self.content}"


class Todos:
    """Numbers are never given twice, so that a removed item cannot be mistaken for a new one."""

    def __init__(self) -> None:
        self.items: list[Todo] = []
        self._made = 0

    def add(self, content: str) -> Todo:
        self._made += 1
        self.items.append(Todo(self._made, content))
        return self.items[-1]

    def find(self, number: int) -> int:
        """The place of an item in the list. Raises `ToolFailure`."""
        for index, item in enumerate(self.items):
            if item.id == number:
                return index
        raise ToolFailure("not_found", f"There is no to-do #{number}", next_step="call todo_get")

    def answer(self, lead: str = "") -> ToolOutput:
        lines = "\n".join(item.line() for item in self.items) or "The list is empty."
        text = f"{lead}\n{lines}" if lead else lines
        return ToolOutput(text, data={"todos": [item._asdict() for item in self.items]})
