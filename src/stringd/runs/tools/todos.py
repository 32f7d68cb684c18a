"""One to-do list per run, shared by its agents.

A resumed run makes its list again from the calls that ended, so that one cut off may be repeated.
"""

from collections.abc import Mapping
from typing import Any

from stringd.runs.tools.base import A, Arguments, BuiltInTool
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure, ToolOutput


class TodoContent(Arguments, frozen=True):
    content: str


class TodoNumber(Arguments, frozen=True):
    id: int | str


class NoArguments(Arguments, frozen=True):
    pass


def _number(value: int | str) -> int:
    text = str(value).removeprefix("#")
    if not (text.isascii() and text.isdigit()):
        raise ToolFailure("not_found", f"There is no to-do {value!r}", next_step="call todo_get")
    return int(text)


class _TodoTool(BuiltInTool[A]):
    """A tool of the to-do list, whose items are numbered in the order they are added."""

    def shared_state(self, _args: Mapping[str, Any]) -> str | None:
        return "todos"


class TodoAdd(_TodoTool[TodoContent]):
    name = "todo_add"
    description = "Add an item to the to-do list of this run."
    takes = TodoContent
    repeatable = True
    effect = "inward"
    rebuilds_state = True

    async def run(self, args: TodoContent, context: ToolContext) -> ToolOutput:
        item = context.desk.todos.add(args.content)
        return ToolOutput(item.line(), data=item._asdict())


class TodoComplete(_TodoTool[TodoNumber]):
    name = "todo_complete"
    description = "Mark an item of the to-do list as done."
    takes = TodoNumber
    repeatable = True
    effect = "inward"
    rebuilds_state = True

    async def run(self, args: TodoNumber, context: ToolContext) -> ToolOutput:
        todos = context.desk.todos
        index = todos.find(_number(args.id))
        todos.items[index] = todos.items[index]._replace(done=True)
        return ToolOutput(todos.items[index].line(), data=todos.items[index]._asdict())


class TodoGet(_TodoTool[NoArguments]):
    name = "todo_get"
    description = "Show the to-do list of this run."
    takes = NoArguments
    repeatable = True
    effect = "inward"

    async def run(self, args: NoArguments, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        return context.desk.todos.answer()


class TodoGetNext(_TodoTool[NoArguments]):
    name = "todo_get_next"
    description = "Show the first item of the to-do list that is not done."
    takes = NoArguments
    repeatable = True
    effect = "inward"

    async def run(self, args: NoArguments, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        waiting = next((item for item in context.desk.todos.items if not item.done), None)
        if waiting is None:
            return ToolOutput("Nothing is left to do.", data={"todo": None})
        return ToolOutput(waiting.line(), data={"todo": waiting._asdict()})


class TodoRemove(_TodoTool[TodoNumber]):
    name = "todo_remove"
    description = "Remove an item from the to-do list."
    takes = TodoNumber
    repeatable = True
    effect = "inward"
    rebuilds_state = True

    async def run(self, args: TodoNumber, context: ToolContext) -> ToolOutput:
        todos = context.desk.todos
        gone = todos.items.pop(todos.find(_number(args.id)))
        return todos.answer(f"Removed #{gone.id}.")


class TodoClear(_TodoTool[NoArguments]):
    name = "todo_clear"
    description = "Remove every item from the to-do list."
    takes = NoArguments
    repeatable = True
    effect = "inward"
    rebuilds_state = True

    async def run(self, args: NoArguments, context: ToolContext) -> ToolOutput:  # noqa: ARG002
        context.desk.todos.items.clear()
        return context.desk.todos.answer()
