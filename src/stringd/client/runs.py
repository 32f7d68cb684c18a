"""A client of the runs wire: requests out, messages in."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from types import TracebackType
from typing import Any, Final, Protocol, Self

import msgspec
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidHandshake

from stringd.client.http import StrangerError, refuse_stranger
from stringd.wire.runs.codec import decode_message, encode_request
from stringd.wire.runs.messages import DaemonMessage, Error, RunBroadcast
from stringd.wire.runs.requests import ClientMessage, Ping, Subscribe, Unsubscribe
from stringd.wire.runs.session import RunsSession

MAX_MESSAGE_BYTES: Final = 64 * 1024 * 1024


class RunsError(Exception):
    """Base of what this client raises."""


class UnreachableError(RunsError):
    """Nobody answers at the daemon's address, or the connection broke."""


class RequestFailedError(RunsError):
    """The daemon refused a request; `code` says how.

    `trust` is what the owner could trust so that it works (`stringd trust`).
    """

    def __init__(self, code: str, message: str, trust: str | None = None) -> None:
        super().__init__(message)
        self.code = code
        self.trust = trust


class RunsChannel(Protocol):
    """A way to runs: requests out, messages in. Entering and sending raise `UnreachableError`."""

    async def __aenter__(self) -> Self: ...

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None: ...

    async def send(self, request: ClientMessage) -> None: ...

    def messages(self) -> AsyncIterator[DaemonMessage]: ...


class _OwnDaemon(ClientConnection):
    """Looks at who serves before it says anything."""

    async def handshake(self, *args: Any, **options: Any) -> None:
        server, own = (self.transport.get_extra_info(name) for name in ("peername", "sockname"))
        refuse_stranger(server[:2], own[:2])
        await super().handshake(*args, **options)


class RunsClient:
    """One connection, used as `async with`. Messages that answer no `ask` wait for `messages`."""

    def __init__(self, port: int, host: str = "127.0.0.1", *, person: bool = False) -> None:
        """`person` says that a person answers through it; a program's answers are kept as such."""
        self._says = {} if person else {"X-Stringd-Client": "program"}
        self._url = f"ws://{host}:{port}/ws"
        self._session = RunsSession("c")
        self._waiting: deque[DaemonMessage] = deque()
        self._socket: ClientConnection

    async def __aenter__(self) -> Self:
        try:
            self._socket = await connect(
                self._url,
                max_size=MAX_MESSAGE_BYTES,
                compression=None,
                proxy=None,
                additional_headers=self._says,
                create_connection=_OwnDaemon,
            )
        except StrangerError as error:
            raise UnreachableError(str(error)) from error
        except (OSError, InvalidHandshake, TimeoutError) as error:
            raise UnreachableError(
                f"no daemon answers at {self._url} ({error}). Start it: stringd up"
            ) from error
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._socket.close()

    async def send(self, request: ClientMessage) -> None:
        """Send without waiting for anything. Raises `UnreachableError`."""
        try:
            await self._socket.send(encode_request(request), text=True)
        except ConnectionClosed as closed:
            raise UnreachableError(f"the daemon closed the connection: {closed}") from closed

    async def ask(self, request: ClientMessage) -> DaemonMessage:
        """Send and wait for the answer. Raises `RequestFailedError` when it is an error."""
        request_id, sent = self._session.ask(request)
        await self.send(sent)
        while True:
            message = await self._receive()
            if self._session.answered(message) != request_id:
                self._waiting.append(message)
            elif isinstance(message, Error):
                raise RequestFailedError(message.code, message.message, message.trust or None)
            else:
                return message

    async def tell(self, request: ClientMessage) -> None:
        """Send a request that is silent when it works. Raises `RequestFailedError`."""
        request_id, sent = self._session.ask(request)
        await self.send(sent)
        # Answers keep their order.
        await self.ask(Ping())
        self._session.forget(request_id)
        for message in self._waiting:
            if isinstance(message, Error) and message.request_id == request_id:
                self._waiting.remove(message)
                raise RequestFailedError(message.code, message.message)

    async def hear_from(self, run_id: str, seq: int) -> None:
        """Hear a run from that broadcast on, instead of from now on. Raises `RunsError`."""
        await self.tell(Unsubscribe(run_id=run_id))
        others = (each for each in self._waiting if not _is_said_by(each, run_id))
        self._waiting = deque(others)
        await self.send(Subscribe(run_id=run_id, from_seq=seq))

    async def messages(self) -> AsyncIterator[DaemonMessage]:
        """Every message that was no answer, as it comes, until the connection ends.

        Where the daemon found us too slow for a run, its events continue from there.
        """
        while True:
            message = self._waiting.popleft() if self._waiting else await self._receive()
            if isinstance(message, Error) and message.code == "SUBSCRIBER_BEHIND":
                assert message.run_id is not msgspec.UNSET
                await self.send(Subscribe(run_id=message.run_id, from_seq=message.next_seq))
            else:
                yield message

    async def _receive(self) -> DaemonMessage:
        while True:
            try:
                return decode_message(await self._socket.recv(decode=False))
            except ConnectionClosed as closed:
                raise UnreachableError(f"the daemon closed the connection: {closed}") from closed
            except msgspec.ValidationError:
                # A newer daemon may say more than we know.
                await asyncio.sleep(0)


def _is_said_by(message: DaemonMessage, run_id: str) -> bool:
    return isinstance(message, RunBroadcast) and message.run_id == run_id
