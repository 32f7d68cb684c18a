"""Who hears what happens in all runs. Nothing a run does depends on it."""

from typing import TYPE_CHECKING, Literal, Protocol

if TYPE_CHECKING:
    from stringd.runs.record.events import DecidedBy
    from stringd.wire.run_status import RunStatus
    from stringd.wire.runs.messages import (
        RequestInput,
        RequestPermission,
        RequestQuestion,
        RunBroadcast,
    )

PromptKind = Literal["permission", "question", "input"]


class RunObserver(Protocol):
    """Called from the event loop, in order; must neither raise nor take long."""

    def prepared(self, run_id: str, strategy: str) -> None:
        """A run can be started."""

    def said(self, strategy: str, status: "RunStatus", message: "RunBroadcast") -> None:
        """A run sent this to its subscribers."""

    def still_asked(
        self,
        strategy: str,
        prompt: "RequestInput | RequestQuestion | RequestPermission",
        since: str,
    ) -> None:
        """A run that was interrupted had asked this, and it can be answered now."""

    def resolved(
        self, run_id: str, kind: PromptKind, request_id: str, answer: str, by: "DecidedBy | None"
    ) -> None:
        """A prompt does not wait any more; `by` is None when nobody answered it."""

    def deleted(self, run_id: str) -> None:
        """A run was deleted."""


class UnobservedRuns:
    """Nobody listens."""

    def prepared(self, run_id: str, strategy: str) -> None: ...

    def said(self, strategy: str, status: "RunStatus", message: "RunBroadcast") -> None: ...

    def still_asked(
        self,
        strategy: str,
        prompt: "RequestInput | RequestQuestion | RequestPermission",
        since: str,
    ) -> None: ...

    def resolved(
        self, run_id: str, kind: PromptKind, request_id: str, answer: str, by: "DecidedBy | None"
    ) -> None: ...

    def deleted(self, run_id: str) -> None: ...
