"""Raw answers for a client that must survive them: slow, endless, cut off."""

import socket
import threading
from collections.abc import Callable
from types import TracebackType
from typing import Self

Script = Callable[[socket.socket, threading.Event], None]


class RawServer:
    """Accepts connections and runs a script on each; `gone` is set when the client left."""

    def __init__(self, script: Script) -> None:
        self.gone = threading.Event()
        self._script = script
        self._stop = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._threads = [threading.Thread(target=self._accept, daemon=True)]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        self._threads[0].start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        with connection:
            connection.recv(65536)
            try:
                self._script(connection, self._stop)
            except OSError:
                self.gone.set()


def drip(connection: socket.socket, stop: threading.Event) -> None:
    """One byte at a time, without end."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not stop.wait(0.02):
        connection.sendall(b"x")


def flood(connection: socket.socket, stop: threading.Event) -> None:
    """As much as the client takes."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n\r\n")
    while not stop.is_set():
        connection.sendall(b"x" * 65536)


def silence(_connection: socket.socket, stop: threading.Event) -> None:
    """Nothing at all."""
    stop.wait()


def cut(connection: socket.socket, _stop: threading.Event) -> None:
    """Less than was promised."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nshort")
