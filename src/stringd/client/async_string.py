"""`AsyncString`: the client of the daemon for an event loop.

async with AsyncString(autostart=True) as string:
    result = await string.exec("file:main", "/open README.md")
"""

import asyncio
import os
from functools import cached_property
from types import TracebackType
from typing import Self

import stringd.client.calls as calls
from stringd.client.async_http import AsyncConnection
from stringd.client.base import BaseClient, nobody_answers
from stringd.client.calls import ClientCall
from stringd.client.daemon import start
from stringd.client.errors import RequestRefusedError
from stringd.client.http import (
    BrokenOffError,
    HttpReply,
    StrangerError,
    TransportError,
    no_answer,
)
from stringd.client.identity import make_home
from stringd.client.values import ExecResult, Health, RegisteredUser, TopicState

PING_SECONDS = 2.0


class AsyncString(BaseClient[AsyncConnection]):
    """Talks to one daemon as one user; takes what `String` takes. Calls may run side by side.

    Nothing is sent twice, whatever happens. Cancelling a call closes the connection: a command
    that still waits for its topic is then not run, one that runs continues to its end.
    """

    @cached_property
    def _connecting(self) -> asyncio.Lock:
        return asyncio.Lock()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    async def connect(self) -> None:
        """Find the daemon, start it if asked to, and make sure the user exists.

        The first command does this by itself. Raises `TransportError`, `RequestRefusedError`.
        """
        async with self._connecting:
            if self._known:
                return
            if not await self._answers():
                if not self._autostart:
                    raise TransportError(nobody_answers(self.port))
                if not await asyncio.to_thread(start, self.port):
                    raise TransportError(f"failed to start stringd on port {self.port}")
            await self._ensure_user()
            self._known = True

    async def exec(self, topic: str, cmd: str, *, request_id: str | None = None) -> ExecResult:
        """Run one command and wait for its answer. Raises `TransportError` only."""
        try:
            await self.connect()
        except RequestRefusedError as error:
            return calls.shut_out(error)
        call = calls.exec_call(
            self.user, topic, cmd, request_id, self._directory(), self._environment()
        )
        try:
            return calls.parse_exec(await self._send(call))
        except BrokenOffError:
            return calls.broken_off()

    async def chanflow(self, text: str) -> str:
        """Run every string block of a text; the reply blocks, in order."""
        await self.connect()
        call = calls.chanflow_call(self.user, text, self._directory(), self._environment())
        return calls.parse_text(await self._send(call))

    async def topics(self, *, all_users: bool = False) -> list[TopicState]:
        """The open topics, of this user or of everybody."""
        call = calls.sessions_call(None if all_users else self.user)
        return calls.parse_topics(await self._send(call))

    async def open_topic(self, topic: str) -> bool:
        """Make sure a topic exists; True when it is new. Raises `RequestRefusedError`."""
        await self.connect()
        fields = calls.parse_json(await self._send(calls.open_topic_call(self.user, topic)))
        return fields["created"] is True

    async def close_topic(self, topic: str) -> bool:
        """Close a topic and what runs in it; False when there was none."""
        fields = calls.parse_json(await self._send(calls.close_topic_call(self.user, topic)))
        return fields["deleted"] is True

    async def users(self) -> list[RegisteredUser]:
        """Every registered user."""
        return calls.parse_users(await self._send(ClientCall("GET", "/users")))

    async def register_user(
        self, user: str, home: str | os.PathLike[str], allowed_paths: list[str] | None = None
    ) -> bool:
        """Add or update a user; True when it is new. Raises `RequestRefusedError`."""
        call = calls.register_call(user, os.fspath(home), allowed_paths)
        return calls.parse_json(await self._send(call))["created"] is True

    async def delete_user(self, user: str) -> bool:
        """Remove a user and its topics, not its files; False when there was none."""
        return calls.parse_json(await self._send(calls.delete_user_call(user)))["deleted"] is True

    async def ping(self) -> bool:
        """Whether a daemon answers. Never raises."""
        try:
            return await self._answers()
        except StrangerError:
            return False

    async def _answers(self) -> bool:
        """Whether a daemon answers. Raises `StrangerError`."""
        try:
            async with asyncio.timeout(PING_SECONDS):
                await self.health()
        except StrangerError:
            raise
        except (TransportError, RequestRefusedError, TimeoutError):
            return False
        return True

    async def health(self) -> Health:
        """What the daemon says about itself. Raises `TransportError`, `RequestRefusedError`."""
        return calls.parse_health(await self._send(ClientCall("GET", "/health")))

    async def shutdown(self) -> None:
        """Ask the daemon to stop; it answers first."""
        calls.parse_json(await self._send(ClientCall("POST", "/shutdown", b"{}")))
        self.close()
        self._known = False

    async def _ensure_user(self) -> None:
        who = self._who
        # Without a chosen home, an existing user keeps the one it has.
        if not who.home_chosen and any(user.id == who.user for user in await self.users()):
            return
        make_home(who.home)
        calls.parse_json(await self._send(calls.register_call(who.user, who.home)))

    async def _send(self, call: ClientCall) -> HttpReply:
        connection = self._idle.pop() if self._idle else AsyncConnection(self.port)
        if not connection.usable:
            connection.close()
        try:
            async with asyncio.timeout(self._timeout):
                reply = await connection.request(call)
        except TimeoutError:
            raise no_answer(self.port, self._timeout) from None
        self._idle.append(connection)
        return reply
