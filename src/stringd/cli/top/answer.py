"""A prompt of a run, whole, and the answer a person types to it."""

import asyncio
import time
from typing import Final, Literal, NamedTuple

from stringd.cli.runs.follow import READ_SECONDS
from stringd.cli.streams import unmistakable, visible
from stringd.cli.top.rows import TopRow
from stringd.client.runs import RequestFailedError, RunsClient, RunsError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import WaitingPrompt

Decision = Literal["allow", "allow-session", "deny"]

ESCAPE: Final = "\x1b"
_DECISIONS: Final[dict[str, Decision]] = {"y": "allow", "Y": "allow-session", "n": "deny"}
_ERASE: Final = ("\x7f", "\b")


class Answering(NamedTuple):
    """What answering came to: still open, or a sentence about it."""

    open: bool
    said: str = ""


class OpenPrompt:
    """One prompt while it is open on the screen."""

    def __init__(self, port: int, run_id: str, strategy: str, asked: WaitingPrompt) -> None:
        self._port = port
        self._run_id = run_id
        self._strategy = strategy
        self._asked = asked
        self._typed = ""
        self._opened = time.monotonic()
        self.whole = True
        """Whether all of it is on the screen: what cannot be read is not allowed."""

    @property
    def lines(self) -> list[str]:
        """Everything that is asked, nothing cut."""
        asked = self._asked
        lines = [f"{asked.agent_name} in {self._strategy} ({self._run_id})", ""]
        match asked.kind:
            case "permission":
                lines += [f"wants to use {asked.tool_name or 'a tool'}: {asked.operation} on"]
                lines += str(asked.resource).split("\n")
                details = asked.details if isinstance(asked.details, dict) else {}
                for name, value in details.items():
                    lines += f"{name}: {value}".split("\n")
            case "question":
                lines += ["asks:", *str(asked.question).split("\n")]
            case "input":
                lines.append("needs your next words")
        return [unmistakable(line) for line in lines]

    @property
    def foot(self) -> str:
        if self._asked.kind == "permission" and not self.whole:
            return (
                "n deny   Esc leave it waiting   (too long for this window: answer it in the page)"
            )
        if self._asked.kind == "permission":
            return "y allow once   Y allow for the session   n deny   Esc leave it waiting"
        return f"Enter sends, Esc leaves it waiting > {unmistakable(self._typed)}"

    def press(self, key: str) -> Answering:
        """Take a key; the answer is sent with the one that completes it."""
        if key == ESCAPE:
            return Answering(open=False)
        if self._asked.kind == "permission":
            decision = _DECISIONS.get(key)
            # A yes begun before the question could be read was meant for something else.
            early = time.monotonic() < self._opened + READ_SECONDS
            refused = decision != "deny" and (early or not self.whole)
            if decision is None or refused:
                return Answering(open=True)
            return self._send(self._decided(decision), decision)
        if key in ("\r", "\n"):
            return self._send(self._replied(), "answered") if self._typed else Answering(open=True)
        if key in _ERASE:
            self._typed = self._typed[:-1]
        elif key.isprintable():
            self._typed += key
        return Answering(open=True)

    def _decided(self, decision: Decision) -> r.ClientMessage:
        return r.PermissionDecision(
            run_id=self._run_id, permission_request_id=self._asked.request_id, decision=decision
        )

    def _replied(self) -> r.ClientMessage:
        asked, run_id, text = self._asked, self._run_id, self._typed
        if asked.kind == "input":
            return r.UserInput(run_id=run_id, agent_name=asked.agent_name, text=text)
        return r.QuestionResponse(
            run_id=run_id, question_request_id=asked.request_id, response=text
        )

    def _send(self, request: r.ClientMessage, word: str) -> Answering:
        try:
            asyncio.run(_tell(self._port, request))
        except RunsError as error:
            return Answering(open=False, said=visible(str(error)))
        return Answering(open=False, said=f"{self._asked.agent_name}: {word}.")


async def _tell(port: int, request: r.ClientMessage) -> None:
    """Send what is only answered when it goes wrong: with the pong, the verdict is in."""
    async with RunsClient(port, person=True) as client:
        await client.send(request)
        await client.send(r.Ping())
        async for message in client.messages():
            if isinstance(message, m.Error):
                raise RequestFailedError(message.code, message.message)
            if isinstance(message, m.Pong):
                return


def open_prompt(port: int, row: TopRow) -> OpenPrompt | str:
    """The prompt of a row, or why there is none to answer."""
    if row.kind == "gate":
        return "The gate is answered in its own terminal, and nowhere else."
    if row.kind not in ("prompt", "run"):
        return "Only what waits can be answered."
    run_id = row.about[0]
    try:
        told = asyncio.run(_waiting(port, run_id))
    except RunsError as error:
        return visible(str(error))
    if not told.waiting:
        return "It waits for nothing."
    wanted = row.about[1:] or (told.waiting[0].kind, told.waiting[0].agent_name)
    asked = next((each for each in told.waiting if _is_meant(each, wanted)), None)
    if asked is None:
        return "It was answered meanwhile."
    return OpenPrompt(port, run_id, told.run.strategy_name, asked)


def _is_meant(asked: WaitingPrompt, wanted: tuple[str, ...]) -> bool:
    kind, agent, *ids = wanted
    by_id = not ids or kind == "input" or asked.request_id == ids[0]
    return (asked.kind, asked.agent_name) == (kind, agent) and by_id


async def _waiting(port: int, run_id: str) -> m.RunTimeline:
    async with RunsClient(port, person=True) as client:
        told = await client.ask(r.GetTimeline(run_id=run_id))
    assert isinstance(told, m.RunTimeline)  # the daemon's only answer
    return told
