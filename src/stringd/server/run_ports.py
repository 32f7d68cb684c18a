"""What agents of a run can use of the rest of the daemon, and of the gate beside it."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stringd.client.daemon import default_home, setting
from stringd.runs import DaemonPorts, ToolFailure, WebFormat
from stringd.runtime.topics.call import Caller
from stringd.wire.result import response_text
from stringd.wire.topic import InvalidTopicError, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.server.turns import TopicTurns

_GATE_SECONDS: Final = 600.0
_GATE_SESSION: Final = "stringd-mcp"


def run_ports(runtime: "Runtime", turns: "TopicTurns") -> DaemonPorts:
    return DaemonPorts(
        string=DaemonTopics(runtime, turns),
        privileged=ask_gate,
        html=page_text,
        fetcher=runtime.services.fetcher,
    )


def page_text(html: str, wanted: WebFormat) -> str:
    """A web page as `/open` shows it, or its bare text. Raises `ToolFailure`."""
    from stringd.documents.html import MAX_DEPTH, html_to_markdown, html_to_text, too_deep

    if too_deep(html):
        raise ToolFailure(
            "command_failed",
            f"The page is nested more than {MAX_DEPTH} deep; it is not converted",
            next_step="ask for it with format html",
        )
    return html_to_markdown(html) if wanted == "markdown" else html_to_text(html)


class DaemonTopics:
    """String commands of agents, in topics of the user this daemon belongs to."""

    def __init__(self, runtime: "Runtime", turns: "TopicTurns") -> None:
        self._runtime = runtime
        self._turns = turns

    async def __call__(self, topic: str, command: str, cwd: Path) -> str:
        try:
            parsed = parse_topic(topic)
        except InvalidTopicError as error:
            raise ToolFailure("not_found", str(error)) from None
        result = await self._turns.run(self._user(), parsed, command, Caller(str(cwd)))
        return response_text(result)

    def _user(self) -> str:
        user_id = setting("USER")[1] or "default"
        if self._runtime.topics.users.get(user_id) is None:
            self._runtime.topics.register(user_id, default_home(user_id))
        return user_id


async def ask_gate(
    pipeline: Sequence[Sequence[str]],
    reason: str,
    cwd: Path,  # noqa: ARG001  # the gate decides where its commands run
    *,
    privileged: bool,
) -> str:
    """Ask the human at the gate; what became of it, in words."""
    from stringd.client.gate import default_socket
    from stringd.client.gate_words import GateUnusableError, ask_in_words

    try:
        words = await ask_in_words(
            default_socket(),
            pipeline,
            _GATE_SECONDS,
            reason=reason,
            session=_GATE_SESSION,
            privileged=privileged,
        )
    except GateUnusableError as error:
        raise ToolFailure("command_failed", str(error), recoverable=False) from None
    return "\n".join(words.parts)
