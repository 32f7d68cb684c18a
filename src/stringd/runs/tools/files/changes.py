"""A change of a file as it is recorded, whether it worked or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import UNSET

from stringd.runs.guard.errors import Denied
from stringd.runs.guard.workspace import WorkspacePath
from stringd.runs.record.events import ToolMutation
from stringd.runs.tools.context import ToolContext
from stringd.runs.tools.output import ToolFailure
from stringd.system.clock import timestamp

Operation = Literal["create", "update", "delete", "move"]


@contextmanager
def recorded(
    context: ToolContext, tool: str, operation: Operation, place: WorkspacePath
) -> Iterator[ToolMutation]:
    """Fill in what is known inside the block; it is recorded at its end."""
    event = ToolMutation(
        ts=timestamp(),
        agent_name=context.agent_name,
        tool_name=tool,
        operation=operation,
        path=place.shown,
        success=True,
    )
    try:
        yield event
    except (ToolFailure, Denied, OSError) as error:
        event.success, event.error, event.diff = False, str(error), UNSET
        raise
    finally:
        context.desk.mutated(event)
