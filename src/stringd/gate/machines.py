"""The other machines of this gate: the way to each, and what runs there."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from stringd.gate.hosts import Hosts, KnownHosts
from stringd.gate.program import Route
from stringd.gate.watch import Watch

if TYPE_CHECKING:
    from stringd.gate.decide import Permit
    from stringd.gate.pipeline import Outcome
    from stringd.gate.remote import Connected, RemoteExecutor


class Machines:
    """Looks up machines and runs permits there. What ssh needs is loaded with the first one."""

    def __init__(
        self, hosts: Hosts, time_limit: int, own_env: Mapping[str, str], near: Path
    ) -> None:
        self._known = KnownHosts(hosts)
        self._time_limit = time_limit
        self._own_env = own_env
        self._near = near
        self._executor: RemoteExecutor | None = None

    def route(self, name: str) -> Route:
        """The way to a machine of the list. Raises `RefusalError`."""
        from stringd.gate.ssh import find_ssh

        entry, caution = self._known.get(name)
        return Route(entry, find_ssh(self._own_env), caution)

    def connect(self, route: Route, watch: Watch, *, agent: bool) -> "Connected":
        """Have a connection; nothing runs yet. Raises `TroubleError` without one."""
        from stringd.gate.remote import RemoteExecutor
        from stringd.gate.ssh import Connections

        if self._executor is None:
            connections = Connections(self._own_env, self._near)
            self._executor = RemoteExecutor(self._time_limit, self._own_env, connections)
        return self._executor.connect(route, watch, agent=agent)

    def run(self, permit: "Permit", connected: "Connected", watch: Watch) -> "Outcome":
        """Run to the end. Raises `TroubleError`."""
        assert self._executor is not None
        return self._executor.run(permit, connected, watch)

    def close(self) -> None:
        """End what was kept of connections."""
        if self._executor is not None:
            self._executor.close()
