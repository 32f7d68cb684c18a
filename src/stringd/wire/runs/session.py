"""The requests of one client of the runs, matched with their answers, without I/O."""

from itertools import count

from msgspec.structs import replace

from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r


class RunsSession:
    """`name` begins the id of every request. Broadcasts echo the id of the request that caused
    them, so clients that hear each other's runs need names of their own.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._ids = count(1)
        self._open: dict[str, str | None] = {}

    def ask(self, request: r.ClientMessage) -> tuple[str, r.ClientMessage]:
        """The request as it is sent, under a new id whose answer is waited for."""
        request_id = f"{self._name}{next(self._ids)}"
        begins = request.run_id if isinstance(request, r.StartRun | r.ContinueRun) else None
        self._open[request_id] = begins
        return request_id, replace(request, request_id=request_id)

    def answered(self, message: m.DaemonMessage) -> str | None:
        """The id of the request this message answers; each is answered once."""
        found = message.request_id
        if found not in self._open and isinstance(message, m.RunBroadcast):
            # Other daemons do not echo the id in a run's first event.
            begun = (key for key, run_id in self._open.items() if run_id == message.run_id)
            found = next(begun, None)
        if not isinstance(found, str) or found not in self._open:
            return None
        del self._open[found]
        return found

    def forget(self, request_id: str) -> None:
        """Wait no longer for an answer to this one."""
        self._open.pop(request_id, None)
