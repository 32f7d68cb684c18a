"""A change of a file as it is recorded, whether it worked or not."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal

from msgspec import UNSET

from stringd.runs.clock import timestamp
from stringd.runs.guard.errors import Denied
from stringd.runs.guard.paths import Place
from stringd.runs.timeline import ToolMutation
from stringd.runs.tools.outcome import ToolFailure
from stringd.runs.tools.port import ToolContext

Operation = Literal["create", "update", "delete", "move"]


@contextmanager
def recorded(
    context: ToolContext, tool: str, operation: Operation, place: Place
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
