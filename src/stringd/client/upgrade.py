"""A daemon of an earlier version: replaced while nobody uses it, else named."""

import os
from typing import NamedTuple

from stringd import __version__
from stringd.client.daemon import data_directory, health, stop
from stringd.client.http import DaemonConnection, TransportError

_WORK = {
    "stringd_active_runs": "run(s) at work",
    "stringd_shells": "live shell(s)",
    "stringd_queued_commands": "waiting command(s)",
    "stringd_run_clients": "connected client(s) of runs",
    "stringd_gate_questions": "open question(s) at the gate",
}
"""Figures of `GET /metrics` that say somebody uses a daemon."""


class Upgrade(NamedTuple):
    """What became of a daemon of an earlier version."""

    version: str
    stopped: bool
    busy_with: str = ""


def make_way(port: int) -> "Upgrade | None":
    """Stop the daemon on this port if it is older than we are and idle; None for all others.

    Raises `StrangerError`.
    """
    held = health(port)
    version = str(held.get("version", "")) if held else ""
    if not is_older(version, __version__):
        return None
    # A daemon of other data is not ours to replace: ours would begin without them.
    elsewhere = held is None or held.get("dataDir") != os.path.realpath(data_directory())
    busy_with = f"data in {held and held.get('dataDir')}" if elsewhere else _work(port)
    return Upgrade(version, not busy_with and stop(port), busy_with)


def is_older(version: str, other: str) -> bool:
    """Whether both are versions of ours and the first one is earlier."""
    first, second = _numbers(version), _numbers(other)
    return bool(first and second) and first < second


def _numbers(version: str) -> "list[int]":
    parts = version.split(".")
    return [int(part) for part in parts] if all(p.isascii() and p.isdigit() for p in parts) else []


def _work(port: int) -> str:
    """What a daemon does for somebody; a daemon that does not say may do anything."""
    try:
        with DaemonConnection(port, timeout=5.0) as connection:
            reply = connection.request("GET", "/metrics")
    except TransportError:
        return "work it does not tell about"
    figures = dict(
        line.rsplit(" ", 1)
        for line in reply.body.decode("utf-8", "replace").splitlines()
        if " " in line and not line.startswith("#")
    )
    if reply.status != 200 or not figures.keys() >= _WORK.keys():
        return "work it does not tell about"
    return ", ".join(
        f"{figures[name].partition('.')[0]} {what}"
        for name, what in _WORK.items()
        if figures[name] not in ("0", "0.0")
    )
