"""`GET /metrics`: the daemon's figures as Prometheus reads them."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from time import monotonic
from typing import TYPE_CHECKING, Final, Literal

from stringd import __version__
from stringd.server.http.messages import CORS_HEADERS, HttpRequest, HttpResponse

if TYPE_CHECKING:
    from stringd.server.feed.observation import Observation
    from stringd.server.runs import RunsEndpoint

_HEAD: Final = b"Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n" + CORS_HEADERS


class Metrics:
    """The endpoint. `connections` says how many are open."""

    def __init__(self, watch: "Observation", runs: "RunsEndpoint") -> None:
        self._watch = watch
        self._runs = runs
        self._started = monotonic()
        self.connections: Callable[[], int] = int

    async def __call__(self, _request: HttpRequest) -> HttpResponse:
        await self._watch.gate.look()
        return HttpResponse(200, _HEAD, "".join(self._families()).encode())

    def _families(self) -> Iterator[str]:
        watch, health = self._watch, self._watch.health()
        states = Counter(str(each.status) for each in self._runs.summaries())
        yield family("info", "gauge", "Which version runs.", {f'{{version="{__version__}"}}': 1})
        up = round(monotonic() - self._started, 3)
        yield family("uptime_seconds", "gauge", "Since the daemon started.", up)
        yield family("requests_total", "counter", "HTTP requests.", watch.requests)
        failed = "Requests that failed inside the daemon."
        yield family("request_errors_total", "counter", failed, watch.errors)
        not_ok = "Commands that answered with an error."
        yield family("failed_commands_total", "counter", not_ok, health.failed_commands)
        yield family("queued_commands", "gauge", "Commands waiting for topics.", health.queued)
        yield family("topics", "gauge", "Open topics.", health.topics)
        yield family("shells", "gauge", "Live shells of bash topics.", health.shells)
        busy = "Shells whose command runs."
        yield family("busy_shells", "gauge", busy, len(health.busy_shells))
        yield family("active_runs", "gauge", "Runs at work.", health.runs)
        labelled = {f'{{state="{state}"}}': count for state, count in sorted(states.items())}
        since = "Runs of this life of the daemon, by state."
        yield family("runs", "gauge", since, labelled)
        yield family("run_prompts", "gauge", "Questions of runs to you.", len(watch.waiting))
        asked = "Questions of the gate to you."
        yield family("gate_questions", "gauge", asked, len(watch.gate.waiting))
        yield family("open_connections", "gauge", "Open connections.", self.connections())
        clients = "WebSocket clients of runs."
        yield family("run_clients", "gauge", clients, self._runs.connected_clients)
        yield family("feed_readers", "gauge", "Readers of the feed.", health.readers)
        yield family("memory_bytes", "gauge", "Resident memory.", health.memory_bytes)


def family(
    name: str,
    kind: Literal["counter", "gauge"],
    about: str,
    value: float | Mapping[str, float],
) -> str:
    """The lines of one metric: a number, or numbers by their labels, which are in braces."""
    values = value if isinstance(value, Mapping) else {"": value}
    full = f"stringd_{name}"
    lines = [f"{full}{labels} {number}" for labels, number in values.items()]
    return "\n".join([f"# HELP {full} {about}", f"# TYPE {full} {kind}", *lines, ""])
