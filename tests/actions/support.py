"""A place and shortcuts to run the pure parts of actions in."""

from collections.abc import Mapping
from pathlib import Path

from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext, Names, NoTopic, Value
from stringd.actions.templates import Inputs
from stringd.documents import Action, parse


def action(text: str, response: str | None = None) -> Action:
    """The action of a block's text."""
    template = f"````act.x.response\n{response}\n````\n" if response is not None else ""
    return parse(f"````act.x\n{text}\n````\n{template}").actions["x"]


class Files(dict[str, bytes]):
    """Files in memory: what a place reads and writes."""

    def read(self, path: str, _limit: int) -> bytes:
        if path not in self:
            raise ActionError("INVALID_PAYLOAD", f"cannot read {path}: No such file")
        return self[path]

    def write(self, path: str, data: bytes) -> str:
        if path.startswith("/forbidden"):
            raise ActionError("FILE_NOT_ALLOWED", "Path outside workspace")
        self[path] = data
        return path if path.startswith("/") else f"/here/{path}"


class Topic(NoTopic):
    """A topic in memory."""

    def __init__(self, files: Files, shortcuts: dict[str, Value] | None, *, in_app: bool) -> None:
        super().__init__()
        if shortcuts is not None:
            self.value_shortcuts = shortcuts
        self.in_app = in_app
        self._files = files

    def read_file(self, path: str, limit: int) -> bytes:
        return self._files.read(path, limit)

    async def write_file(self, path: str, data: bytes) -> str:
        return self._files.write(path, data)


def place(
    *,
    files: Files | None = None,
    stored: Mapping[str, str] | None = None,
    variables: dict[str, str] | None = None,
    shortcuts: dict[str, Value] | None = None,
    context: Mapping[str, str] | None = None,
    in_app: bool = False,
) -> ActionContext:
    held = variables if variables is not None else {}
    return ActionContext(
        "/act.x",
        "file:///home/app.md",
        Path("/"),
        names=Names(held, context or {}, stored or {}),
        topic=Topic(files if files is not None else Files(), shortcuts, in_app=in_app),
    )


def inputs(values: Mapping[str, Value], at: ActionContext | None = None) -> Inputs:
    return Inputs(values, at or place())
