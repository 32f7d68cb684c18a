"""Permissions of runs, asked at the gate too: whoever answers first, there or elsewhere, decides.

To the gate the daemon is one more caller. Its answer is taken like that of a client on `/ws`: as
the word of the process that listens at the gate's socket, and of none that a daemon started.
"""

import asyncio
import json
import os
from typing import TYPE_CHECKING, Final

from stringd.client.gate import build_request
from stringd.gate.characters import cleaned
from stringd.gate.hook_text import visible
from stringd.system.lineage import Program, is_descendant
from stringd.system.peers import unix_peer
from stringd.wire.gate import (
    MAX_REQUEST_BYTES,
    Request,
    RequestAction,
    ResponseError,
    Status,
    decode_response,
    encode_request,
)
from stringd.wire.runs import messages as m
from stringd.wire.runs.codec import encode_request as encode_runs_request
from stringd.wire.runs.requests import PermissionDecision

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from stringd.runs import DecidedBy, RunObserver, RunService
    from stringd.wire.feed import PromptKind
    from stringd.wire.run_status import RunStatus

GATE: Final = "stringd gate"
SESSION: Final = "stringd-run"
MAX_ASKED: Final = 12
"""At the gate at once: it takes 16 of one caller, and commands of runs need places too."""
_DEEDS: Final = {"fs.read": "read", "fs.write": "write", "fs.exec": "run"}
# Said by other words, or not for people.
_QUIET: Final = ("editable", "path")

_Key = tuple[str, str]


class GateSpeaker:
    """The process that listens at the gate's socket."""

    def __init__(self, pid: int) -> None:
        self._pid = pid

    async def outsider(self) -> Program | None:
        """It, unless a daemon started it: then it speaks for an agent, whatever it is called."""
        started = await asyncio.to_thread(is_descendant, self._pid)
        return None if started else Program(self._pid, GATE)


class GateAnswers:
    """Hears the runs, and asks at the gate what they ask for, if a gate runs."""

    def __init__(
        self,
        inner: "RunObserver",
        service: "Callable[[], Awaitable[RunService]]",
        socket: str,
    ) -> None:
        self._inner = inner
        self._service = service
        self._socket = socket
        self._asked: dict[_Key, asyncio.Task[None]] = {}
        self._answered: dict[_Key, str] = {}
        """Who answered elsewhere, until the gate was told."""

    def prepared(self, run_id: str, strategy: str) -> None:
        self._inner.prepared(run_id, strategy)

    def said(self, strategy: str, status: "RunStatus", message: m.RunBroadcast) -> None:
        self._inner.said(strategy, status, message)
        if isinstance(message, m.RequestPermission) and len(self._asked) < MAX_ASKED:
            key = message.run_id, str(message.request_id)
            task = asyncio.get_running_loop().create_task(self._ask(key, strategy, message))
            self._asked[key] = task
            task.add_done_callback(lambda _: self._asked.pop(key, None))

    def still_asked(
        self,
        strategy: str,
        prompt: m.RequestInput | m.RequestQuestion | m.RequestPermission,
        since: str,
    ) -> None:
        self._inner.still_asked(strategy, prompt, since)

    def resolved(
        self, run_id: str, kind: "PromptKind", request_id: str, answer: str, by: "DecidedBy | None"
    ) -> None:
        self._inner.resolved(run_id, kind, request_id, answer, by)
        key = run_id, request_id
        if (task := self._asked.get(key)) is not None:
            self._answered[key] = "" if by is None else f"{answer} by {by.words}"
            task.cancel()

    def deleted(self, run_id: str) -> None:
        self._inner.deleted(run_id)

    async def close(self) -> None:
        """Withdraw what is still asked."""
        tasks = list(self._asked.values())
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _ask(self, key: _Key, strategy: str, prompt: m.RequestPermission) -> None:
        """Ask, and pass the answer on. Whatever goes wrong, the prompt waits elsewhere."""
        try:
            reader, writer = await asyncio.open_unix_connection(
                self._socket, limit=MAX_REQUEST_BYTES
            )
        except OSError:
            return
        try:
            pid, account = unix_peer(writer.get_extra_info("socket"))
            speaker = GateSpeaker(pid)
            # What is asked may be private: nothing is sent to whom we would not believe.
            if account != os.geteuid() or await speaker.outsider() is None:
                return
            writer.write(encode_request(_question(strategy, prompt)))
            line = await reader.readline()
            await self._take(key, line, speaker)
        except (OSError, ValueError, ResponseError):
            return
        except asyncio.CancelledError:
            if who := self._answered.get(key):
                writer.write(json.dumps({"answered_by": who}).encode() + b"\n")
            raise
        finally:
            self._answered.pop(key, None)
            writer.close()

    async def _take(self, key: _Key, line: bytes, speaker: GateSpeaker) -> None:
        response = decode_response(line)
        if response.status not in (Status.OK, Status.DENIED):
            return
        decision = PermissionDecision(
            run_id=key[0],
            permission_request_id=key[1],
            decision="allow" if response.status is Status.OK else "deny",
            reason=response.decision_note or "",
        )
        # The answer is ours now: what it resolves is not to cancel this task.
        self._asked.pop(key, None)
        service = await self._service()
        client = service.connect(lambda: None, speaker=speaker, kind="human")
        try:
            client.receive(encode_runs_request(decision))
            if tasks := list(client.tasks):
                await asyncio.wait(tasks)
        finally:
            client.gone()


def _question(strategy: str, prompt: m.RequestPermission) -> Request:
    details = prompt.details if isinstance(prompt.details, dict) else {}
    tool = prompt.tool_name or prompt.operation
    return build_request(
        [],
        action=RequestAction.DECIDE,
        privileged=False,
        session=SESSION,
        client=cleaned(f"run {prompt.run_id} of {strategy}, agent {prompt.agent_name}"),
        directory=cleaned(str(details.get("cwd", ""))),
        tool=cleaned(str(tool)),
        text=permission_text(prompt),
    )


def permission_text(prompt: m.RequestPermission) -> str:
    """Everything the answer depends on: what is wanted, and whatever was said about it."""
    details = prompt.details if isinstance(prompt.details, dict) else {}
    lines = [f"{_DEEDS.get(prompt.operation, prompt.operation)} {prompt.resource}"]
    for name, value in details.items():
        if name in _QUIET or value in (prompt.resource, None, [], {}):
            continue
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        lines.append(f"# {name}: {said}")
    return visible("\n".join(lines))
