"""Where runs are kept. The engine knows only this; files are behind it today."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from stringd.runs.errors import NotRecordedError, PrepareError
from stringd.runs.record.events import AnyEvent, RunCompleted, TimelineEvent
from stringd.wire.runs.types import RunOverview

_PLAIN_NAME: Final = re.compile(r"[^\x00-\x1f\x7f/\\]+")
# A file name may have 255 bytes, our endings included.
_MAX_NAME_BYTES: Final = 200


def check_run_id(run_id: str) -> None:
    """A run id names files; only a plain file name will do. Raises `PrepareError`."""
    too_long = len(run_id.encode("utf-8", "replace")) > _MAX_NAME_BYTES
    if too_long or not _PLAIN_NAME.fullmatch(run_id) or run_id in (".", ".."):
        raise PrepareError(
            f"Invalid run id: {run_id[:80]!r}. Use letters, digits, dots, dashes; no slashes."
        )


class KeptStrategy(NamedTuple):
    """A strategy that came with its run: its JSON, and the file that has it."""

    path: Path
    data: bytes


class RunStore(Protocol):
    """Timelines, broadcasts and settings by run id.

    What `append` and `append_broadcast` took survives the process; what `sync` confirmed survives
    the machine. What cannot be recorded is not done: `append` and `sync` raise `NotRecordedError`,
    and a claimed run that lost one event takes no other until it is released. Broadcasts repeat
    what the timeline says; that one cannot be kept is only logged.
    """

    def claim(self, run_id: str) -> bool:
        """Make the run ours until it is released; False while another process has it.

        Raises `NotRecordedError` where nothing can be written.
        """
        ...

    def append(self, run_id: str, event: TimelineEvent) -> None: ...

    def lost(self, run_id: str) -> NotRecordedError | None:
        """Why a claimed run takes no more events."""
        ...

    def end(self, run_id: str, event: RunCompleted) -> None:
        """Append the end of a segment, whatever was lost before; never raises.

        What cannot be written counts for this process until something else is recorded.
        """
        ...

    async def sync(self, run_id: str) -> None: ...

    def timeline(self, run_id: str) -> list[AnyEvent]: ...

    def exists(self, run_id: str) -> bool:
        """Whether anything of it can be read."""
        ...

    def append_broadcast(self, run_id: str, frame: bytes) -> None: ...

    def last_seq(self, run_id: str) -> int: ...

    def last_frame(self, run_id: str) -> bytes | None: ...

    def broadcasts(self, run_id: str, from_seq: int) -> Iterator[tuple[int, bytes]]:
        """Kept frames from that number on, each with its own; forgotten ones are left out."""
        ...

    def broadcast_pieces(self, run_id: str) -> Iterator[bytes]:
        """Kept frames as lines, in pieces that end anywhere; nothing is held between two."""
        ...

    def surplus(self, keep: int) -> list[str]:
        """Completed runs past the newest `keep` that still have more than their last frame."""
        ...

    def forget_broadcasts(self, run_id: str) -> None:
        """Keep only the last frame of a run that rests, so that its numbers go on from there."""
        ...

    def overviews(self) -> list[RunOverview]: ...

    def repair(self) -> list[str]:
        """End segments a crash left open; returns every run whose last segment ended so."""
        ...

    def selection(self, run_id: str) -> list[str] | None:
        """The MCP servers chosen for a run, or None before the first preparation."""
        ...

    def save_selection(self, run_id: str, server_ids: list[str], *, synced: bool = True) -> None:
        """What is `synced` survives the machine, the rest the process. Raises `OSError`."""
        ...

    def drop_selection(self, run_id: str) -> None: ...

    def create(self, run_id: str, events: Sequence[TimelineEvent], frames: list[bytes]) -> None:
        """Make a run that rests, whole or not at all; it survives the machine.

        Not only for the loop's thread. Raises `FileExistsError` or `OSError`.
        """
        ...

    def keep_strategy(self, run_id: str, strategy: bytes) -> Path:
        """Keep the JSON of a strategy that came with its run, as a file. Raises `OSError`."""
        ...

    def kept_strategy(self, run_id: str) -> "KeptStrategy | None":
        """The strategy that came with a run. Raises `OSError`."""
        ...

    def drop_strategy(self, run_id: str) -> None: ...

    def delete(self, run_id: str) -> None:
        """Forget everything about a run that rests."""
        ...

    def release(self, run_id: str) -> None:
        """The run rests; keep nothing open for it."""
        ...

    def close(self) -> None: ...
