"""A port in front of the daemon's that tells when an answer to `/exec` has begun."""

import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self


class Relay:
    """Passes connections on, in both directions, until either side ends."""

    def __init__(self, port: int) -> None:
        self.answered = threading.Event()
        self._target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._ways: list[threading.Thread] = []

    def __enter__(self) -> Self:
        self._start(self._accept)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        # The thread that waits for another connection is woken by this.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for way in self._ways:
            way.join()

    def _start(self, work: Callable[..., None], *arguments: socket.socket) -> None:
        way = threading.Thread(target=work, args=arguments)
        self._ways.append(way)
        way.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                self._start(self._pass_on, self._listener.accept()[0])

    def _pass_on(self, caller: socket.socket) -> None:
        target = ("127.0.0.1", self._target)
        with suppress(OSError), caller, socket.create_connection(target) as daemon:
            self._start(self._copy, caller, daemon)
            while data := daemon.recv(65536):
                caller.sendall(data)
                if b"text/event-stream" in data:
                    self.answered.set()
            caller.shutdown(socket.SHUT_RDWR)

    @staticmethod
    def _copy(caller: socket.socket, daemon: socket.socket) -> None:
        with suppress(OSError):
            while data := caller.recv(65536):
                daemon.sendall(data)
            daemon.shutdown(socket.SHUT_WR)
