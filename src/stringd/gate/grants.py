"""Grants: what the person allowed again and again for a while, with two presses of `g`.

A grant covers exactly one pipeline with its environment and the files it runs, for one caller. It
is in memory only, ends by itself, and is never for root or for a forwarded agent.
"""

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from stringd.gate.callers import CallerId
from stringd.gate.program import Identity

GRANT_SECONDS: Final = 600.0
GRANT_USES: Final = 20
MAX_GRANTS: Final = 200


class GrantedCaller(NamedTuple):
    """Who may use a grant: a process by its number and start, what it runs, and who it speaks by.

    What it says of itself, its session and the client it asks for, only narrows.
    """

    who: CallerId
    program: str
    asking: str
    session: str
    client: str = ""


class FileIdentity(NamedTuple):
    """A file that a command runs or reads by itself, as it was."""

    path: str
    identity: Identity | None
    digest: str | None = None


class Granted(NamedTuple):
    """Exactly what a grant covers."""

    pipeline: tuple[tuple[str, ...], ...]
    env: tuple[tuple[str, str], ...]
    files: tuple[FileIdentity, ...]
    caller: GrantedCaller


@dataclass(slots=True)
class Grant:
    number: int
    what: Granted
    ends: float
    uses: int = 0


class GrantBook:
    """The grants of one gate."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._grants: dict[int, Grant] = {}
        self._last = 0

    def __len__(self) -> int:
        return len(self._grants)

    def give(self, what: Granted) -> Grant | None:
        """A new grant; None where there are too many."""
        with self._lock:
            self._forget()
            if len(self._grants) >= MAX_GRANTS:
                return None
            self._last += 1
            grant = Grant(self._last, what, self._clock() + GRANT_SECONDS)
            self._grants[grant.number] = grant
            return grant

    def live(self) -> dict[int, Granted]:
        """What may be used now, by number."""
        with self._lock:
            self._forget()
            return {number: grant.what for number, grant in self._grants.items()}

    def use(self, number: int) -> int | None:
        """Count a use: the how manieth it is, or None if the grant has ended meanwhile."""
        with self._lock:
            self._forget()
            grant = self._grants.get(number)
            if grant is None:
                return None
            grant.uses += 1
            return grant.uses

    def revoke(self, number: int | None = None) -> list[int]:
        """End one grant, or all of them; the numbers of those that there were."""
        with self._lock:
            self._forget()
            ended = [each for each in self._grants if number in (None, each)]
            for each in ended:
                del self._grants[each]
            return ended

    def revoke_of(self, who: CallerId) -> list[int]:
        """End every grant of a caller."""
        with self._lock:
            ended = [n for n, grant in self._grants.items() if grant.what.caller.who == who]
            for each in ended:
                del self._grants[each]
            return ended

    def listed(self) -> list[Mapping[str, object]]:
        """Every grant, in words for a list."""
        with self._lock:
            self._forget()
            now = self._clock()
            return [
                {
                    "grant": grant.number,
                    "pipeline": grant.what.pipeline,
                    "env": dict(grant.what.env),
                    "pid": grant.what.caller.who.pid,
                    "program": grant.what.caller.program,
                    "session": grant.what.caller.session,
                    "uses": grant.uses,
                    "uses_left": GRANT_USES - grant.uses,
                    "seconds_left": max(0, round(grant.ends - now)),
                }
                for grant in self._grants.values()
            ]

    def _forget(self) -> None:
        now = self._clock()
        over = [
            n for n, each in self._grants.items() if each.ends <= now or each.uses >= GRANT_USES
        ]
        for number in over:
            del self._grants[number]
