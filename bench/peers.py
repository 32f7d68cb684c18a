"""What it costs to ask the kernel who is at the other end."""

import os
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path

from bench.table import Row
from stringd.system.lineage import outsider_holding
from stringd.system.peers import open_socket_table, stranger_serving

TITLE = "Who connects"
ROUNDS = 5


def rows() -> Iterator[Row]:
    table = open_socket_table()
    if table is None:
        yield Row("who connected", "not measured", "no sock_diag", None, "≤ 60 µs")
        return
    with socket.create_server(("127.0.0.1", 0)) as listener:
        client = socket.create_connection(listener.getsockname())
        accepted, _ = listener.accept()
        with client, accepted:
            connecting, connecting_peer = accepted.getpeername(), accepted.getsockname()
            once = best(lambda: table.connected(connecting, connecting_peer), 5000)
            yield Row("who connected, once a connection", f"{once:.1f} µs", "–", None, "≤ 60 µs")
            asking = best(lambda: stranger_serving(connecting_peer, connecting), 1000)
            yield Row("who serves, before a client sends", f"{asking:.1f} µs", "–", None, "≤ 60 µs")
            inode = os.fstat(client.fileno()).st_ino
            processes = sum(each.name.isdigit() for each in Path("/proc").iterdir())
            looking = best(lambda: outsider_holding(inode), 3) / 1000
            what = f"which process decides, among {processes}, in a thread"
            yield Row(what, f"{looking:.1f} ms", "–", None, "informative")
    table.close()


def best(work: Callable[[], object], times: int) -> float:
    """Microseconds a call, in the quickest of some rounds: what else runs only adds to it."""
    found = []
    for _ in range(ROUNDS):
        started = time.perf_counter()
        for _ in range(times):
            work()
        found.append((time.perf_counter() - started) / times * 1e6)
    return min(found)
