"""The gate in the feed: its audit log, followed while somebody watches.

The gate is another process that owes the daemon nothing. Its log is what it promises to write
before it acts, so that is what is read; nothing here can answer a question.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import time
from typing import TYPE_CHECKING, Any, Final

import msgspec

from stringd.system.clock import timestamp
from stringd.wire.feed import FeedEvent, GateAsked, GateDecided, GateEnded

if TYPE_CHECKING:
    from stringd.server.feed.ring import Feed

LOOK_SECONDS: Final = 0.5
TAIL_BYTES: Final = 512 * 1024
"""How much of an existing log is read for questions that are still open."""
SLICE_BYTES: Final = 8 * 1024 * 1024
FORGOTTEN_SECONDS: Final = 600
"""Longer than any gate waits for a key: what is older belongs to one that was killed."""
SHOWN_CHARACTERS: Final = 4_000

Publish = Callable[[FeedEvent], None]

_PAGE: Final = re.compile(r"http://localhost:[0-9]{1,5}/")
_ENDINGS: Final = ("finished", "failed", "abandoned", "stopped")


class GateWatch:
    """Follows an audit log and tells the feed."""

    def __init__(self, feed: "Feed", log: Path) -> None:
        self._feed = feed
        self._log = log
        self._inode = 0
        self._offset = 0
        self._looked = False
        self._rest = b""
        self.waiting: dict[str, GateAsked] = {}
        """Questions nobody has decided, oldest first."""

    async def follow(self) -> None:
        """Look for new records until cancelled."""
        while True:
            await self.look()
            await asyncio.sleep(LOOK_SECONDS)

    async def look(self) -> None:
        """Take in what was written since the last look."""
        first, self._looked = not self._looked, True
        for record in await asyncio.to_thread(lambda: list(self._new_records())):
            self._take(record, None if first else self._feed.publish)
        if first:
            oldest = timestamp(time() - FORGOTTEN_SECONDS)
            self.waiting = {key: each for key, each in self.waiting.items() if each.ts > oldest}

    def _new_records(self) -> Iterator[dict[str, Any]]:
        try:
            descriptor = os.open(self._log, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return
        try:
            state = os.fstat(descriptor)
            if state.st_ino != self._inode or state.st_size < self._offset:
                self._inode, self._rest = state.st_ino, b""
                self._offset = max(0, state.st_size - TAIL_BYTES)
            data = os.pread(descriptor, SLICE_BYTES, self._offset)
        finally:
            os.close(descriptor)
        self._offset += len(data)
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            try:
                record = msgspec.json.decode(line)
            except msgspec.DecodeError:
                # The first line after a jump into the middle, or one a power loss cut off.
                continue
            if isinstance(record, dict):
                yield record

    def _take(self, record: dict[str, Any], publish: Publish | None) -> None:
        tell = publish or _nobody
        event, request_id = str(record.get("event", "")), str(record.get("id", ""))
        if event in ("started", "ended"):
            # What an earlier gate was asked, this one does not show.
            for open_id in list(self.waiting):
                self._end(open_id, {"event": "stopped", "message": "the gate ended"}, tell)
        elif event == "received" and not _is_ours(record):
            asked = _asked(request_id, record)
            self.waiting[request_id] = asked
            tell(asked)
        elif event == "decided":
            self.waiting.pop(request_id, None)
            decision, note = str(record.get("decision", "")), str(record.get("note", "") or "")
            by = str(record.get("by", ""))[:SHOWN_CHARACTERS]
            tell(
                GateDecided(
                    ts=_time(record), request_id=request_id, decision=decision, note=note, by=by
                )
            )
        elif event in _ENDINGS and request_id:
            self._end(request_id, record, tell)

    def _end(self, request_id: str, record: dict[str, Any], tell: Publish) -> None:
        self.waiting.pop(request_id, None)
        codes = record.get("exit_codes")
        tell(
            GateEnded(
                ts=_time(record),
                request_id=request_id,
                how=record["event"],
                exit_codes=[code for code in codes if isinstance(code, int)]
                if isinstance(codes, list)
                else [],
                message=str(record.get("message", ""))[:SHOWN_CHARACTERS],
            )
        )


def _is_ours(record: dict[str, Any]) -> bool:
    """Whether a run's permission is asked there, which waits in the feed already."""
    peer = record.get("peer")
    is_decision = record.get("action") == "decide"
    return is_decision and isinstance(peer, dict) and peer.get("pid") == os.getpid()


def _nobody(_event: FeedEvent) -> None:
    """For records that were there before anybody watched."""


def _time(record: dict[str, Any]) -> str:
    return str(record.get("time", ""))


def _asked(request_id: str, record: dict[str, Any]) -> GateAsked:
    pipeline = record.get("pipeline")
    stages = pipeline if isinstance(pipeline, list) else [[str(record.get("pipeline_start", ""))]]
    if "tool" in record:
        text = str(record.get("text", record.get("text_start", "")))
        stages = [[str(record["tool"]), text[:SHOWN_CHARACTERS]]]
    peer = record.get("peer")
    peer = peer if isinstance(peer, dict) else {}
    return GateAsked(
        ts=_time(record),
        request_id=request_id,
        stages=[[str(word) for word in stage] for stage in stages if isinstance(stage, list)],
        privileged=bool(record.get("privileged")),
        reason=str(record.get("reason", ""))[:SHOWN_CHARACTERS],
        session=str(record.get("session", "")),
        program=str(peer.get("exe", "") or ""),
        cwd=str(peer.get("cwd", "") or ""),
        page=page if _PAGE.fullmatch(page := str(record.get("page", ""))) else "",
    )
