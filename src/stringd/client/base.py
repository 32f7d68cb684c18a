"""What both clients of the daemon share: whom they act as, and connections they keep."""

import os
from typing import Generic, Protocol, TypeVar

from stringd.client.identity import identity, working_directory
from stringd.system.vouched import vouched


def nobody_answers(port: int) -> str:
    """What to do when no daemon runs."""
    return f"no stringd answers on port {port}: start it with `stringd up`, or give autostart=True"


class Closable(Protocol):
    """Either kind of connection."""

    def close(self) -> None: ...


_C = TypeVar("_C", bound=Closable)


class BaseClient(Generic[_C]):
    """What `String` and `AsyncString` are made from; `_C` is how they connect."""

    def __init__(
        self,
        user: str | None = None,
        *,
        home: str | os.PathLike[str] | None = None,
        port: int | None = None,
        cwd: str | os.PathLike[str] | None = None,
        send_cwd: bool = True,
        autostart: bool = False,
        timeout: float | None = None,
    ) -> None:
        self._who = identity(user, home, port)
        self._cwd = os.fspath(cwd) if cwd is not None else None
        self._send_cwd = send_cwd
        self._autostart = autostart
        self._timeout = timeout
        self._idle: list[_C] = []
        self._known = False

    @property
    def user(self) -> str:
        return self._who.user

    @property
    def port(self) -> int:
        return self._who.port

    def close(self) -> None:
        """Close the connections; the client can still be used."""
        while self._idle:
            self._idle.pop().close()

    def _directory(self) -> str | None:
        return (self._cwd or working_directory()) if self._send_cwd else None

    def _environment(self) -> dict[str, str] | None:
        return vouched(os.environ) if self._send_cwd else None
