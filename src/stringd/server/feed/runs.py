"""Runs in the feed: their states and steps, and what they wait for."""

from typing import TYPE_CHECKING, Final

from stringd.system.clock import timestamp
from stringd.wire.feed import PromptKind, RunChanged, RunResolved, RunStep, RunWaiting
from stringd.wire.runs import messages as m
from stringd.wire.runs.prompts import prompt_id

if TYPE_CHECKING:
    from stringd.runs import DecidedBy
    from stringd.server.feed.ring import Feed
    from stringd.wire.run_status import RunStatus

SHOWN_CHARACTERS: Final = 400
"""Of a result, an error or a question; the whole text comes over `/ws`."""
RESOURCE_CHARACTERS: Final = 4_000
MAX_ENDED: Final = 1_000


class RunWatch:
    """Hears the runs and tells the feed."""

    def __init__(
        self,
        feed: "Feed",
        waiting: dict[tuple[str, str], RunWaiting],
        ended: dict[str, RunChanged],
    ) -> None:
        """`waiting` and `ended` are kept up to date: open prompts, and how runs ended."""
        self._ended = ended
        self._feed = feed
        self._waiting = waiting

    def prepared(self, run_id: str, strategy: str) -> None:
        self._state(run_id, strategy, "pending")

    def said(self, strategy: str, status: "RunStatus", message: m.RunBroadcast) -> None:
        match message:
            case m.AgentStreaming():
                return
            case m.StrategyStarted():
                self._state(message.run_id, strategy, "running")
            case m.StrategyCompleted():
                self._state(message.run_id, strategy, "completed", result=_short(message.result))
            case m.StrategyError():
                error = f"{message.error.code}: {message.error.message}"
                self._state(message.run_id, strategy, status, error=_short(error))
            case m.StepStarted():
                step = RunStep(run_id=message.run_id, step=message.step_name, state="started")
                self._feed.publish(step)
            case m.StepCompleted():
                step = RunStep(run_id=message.run_id, step=message.step_name, state="completed")
                self._feed.publish(step)
            case m.RequestInput() | m.RequestQuestion() | m.RequestPermission():
                self._wait(_waiting(strategy, message), timestamp())

    def still_asked(
        self,
        strategy: str,
        prompt: m.RequestInput | m.RequestQuestion | m.RequestPermission,
        since: str,
    ) -> None:
        self._wait(_waiting(strategy, prompt), since)

    def resolved(
        self, run_id: str, kind: PromptKind, request_id: str, answer: str, by: "DecidedBy | None"
    ) -> None:
        if self._waiting.pop((run_id, request_id), None) is not None or by is not None:
            self._feed.publish(
                RunResolved(
                    run_id=run_id,
                    prompt=kind,
                    request_id=request_id,
                    answer=_short(answer),
                    by="" if by is None else by.words,
                )
            )

    def deleted(self, run_id: str) -> None:
        self._feed.publish(RunChanged(run_id=run_id, strategy="", status="deleted"))

    def _wait(self, waiting: RunWaiting, since: str) -> None:
        waiting.ts = since
        self._waiting[waiting.run_id, waiting.request_id] = waiting
        self._feed.publish(waiting)

    def _state(
        self, run_id: str, strategy: str, status: "RunStatus", result: str = "", error: str = ""
    ) -> None:
        changed = RunChanged(
            run_id=run_id, strategy=strategy, status=status, result=result, error=error
        )
        self._ended.pop(run_id, None)
        if status not in ("pending", "running"):
            self._ended[run_id] = changed
            if len(self._ended) > MAX_ENDED:
                del self._ended[next(iter(self._ended))]
        self._feed.publish(changed)


def _waiting(
    strategy: str, prompt: m.RequestInput | m.RequestQuestion | m.RequestPermission
) -> RunWaiting:
    if isinstance(prompt, m.RequestInput):
        return RunWaiting(
            run_id=prompt.run_id,
            strategy=strategy,
            prompt="input",
            request_id=prompt_id(prompt),
            agent=prompt.agent_name,
            text=_short(prompt.prompt or ""),
        )
    if isinstance(prompt, m.RequestQuestion):
        return RunWaiting(
            run_id=prompt.run_id,
            strategy=strategy,
            prompt="question",
            request_id=prompt_id(prompt),
            agent=prompt.agent_name,
            text=_short(prompt.question),
        )
    return RunWaiting(
        run_id=prompt.run_id,
        strategy=strategy,
        prompt="permission",
        request_id=prompt_id(prompt),
        agent=prompt.agent_name,
        tool=prompt.tool_name or "",
        operation=prompt.operation,
        resource=prompt.resource[:RESOURCE_CHARACTERS],
    )


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARACTERS else f"{text[:SHOWN_CHARACTERS]}…"
