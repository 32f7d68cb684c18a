"""Runs in this process: the daemon's own engine behind the same messages."""

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from types import TracebackType
from typing import Self

import msgspec
from msgspec import UNSET
from msgspec.structs import replace

from stringd.client import UnreachableError
from stringd.client.daemon import data_directory
from stringd.runs import Hooks, Models, ProviderDirectory, Registry, RunsConfig, RunService
from stringd.system.files import make_private_directory
from stringd.wire.runs.codec import decode_message, encode_request
from stringd.wire.runs.messages import DaemonMessage
from stringd.wire.runs.requests import ClientMessage, PrepareRun


class LocalConnection:
    """An engine of its own. Keys are those of the environment and of the user's daemon.

    Runs are kept in `data_dir`; without one they are forgotten when the connection ends.
    """

    def __init__(self, data_dir: Path | None = None, hooks: Hooks | None = None) -> None:
        self._wanted = data_dir
        self._hooks = hooks or Hooks()
        self._temporary: tempfile.TemporaryDirectory[str] | None = None
        self._news = asyncio.Event()
        self._number = 0

    async def __aenter__(self) -> Self:
        if self._wanted is None:
            self._temporary = tempfile.TemporaryDirectory(prefix="stringd-")
        self._data_dir = Path(self._temporary.name if self._temporary else str(self._wanted))
        make_private_directory(self._data_dir)
        config = RunsConfig(self._data_dir, Path.cwd(), registry=Registry(hooks=self._hooks))
        models = Models(directory=ProviderDirectory(Path(data_directory())))
        self._service = RunService(config, models=models)
        await self._service.start()
        self._client = self._service.connect(self._news.set, kind="program")
        return self

    async def __aexit__(
        self,
        _kind: type[BaseException] | None,
        _error: BaseException | None,
        _trace: TracebackType | None,
    ) -> None:
        self._client.gone()
        await self._service.stop()
        if self._temporary is not None:
            await asyncio.to_thread(self._temporary.cleanup)

    async def send(self, request: ClientMessage) -> None:
        if self._client.closing:
            raise UnreachableError("the engine of this process has stopped")
        if isinstance(request, PrepareRun) and request.strategy is not UNSET:
            request = self._own(request)
        self._client.receive(encode_request(request))

    async def messages(self) -> AsyncIterator[DaemonMessage]:
        while True:
            await self._news.wait()
            self._news.clear()
            for frame in self._client.take():
                yield decode_message(frame)

    def _own(self, request: PrepareRun) -> PrepareRun:
        """The strategy as a file of the owner's: it is the program's own word."""
        folder = self._data_dir / "strategies"
        make_private_directory(folder)
        self._number += 1
        path = folder / f"program-{self._number}.json"
        path.write_bytes(msgspec.json.encode(request.strategy))
        return replace(request, strategy=UNSET, strategy_path=str(path))
