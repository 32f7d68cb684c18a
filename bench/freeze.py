"""Hostile text: how much longer readers take for larger ones, and how long the loop is busy.

`BENCH_FREEZE_BYTES` is the larger size, `BENCH_FREEZE_EVERY` takes only every so many texts.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.bounds import busiest, probed_daemon
from bench.table import Row
from stringd.client.daemon import register
from stringd.client.exec import json_object
from stringd.client.http import DaemonConnection
from tests.support.freeze.hostile import HOSTILE
from tests.support.freeze.readers import IN_WORKERS, READERS, encoded, forget

TITLE = "Hostile text"
SMALL = 10_000
LARGE = int(os.environ.get("BENCH_FREEZE_BYTES", "160000"))
EVERY = int(os.environ.get("BENCH_FREEZE_EVERY", "1"))
TEXTS = HOSTILE[::EVERY]


def rows() -> Iterator[Row]:
    yield from daemon_rows()
    for name in READERS:
        if name not in IN_WORKERS:
            yield reader_row(name)


def reader_row(name: str) -> Row:
    """The text a reader takes longest over, in proportion to a smaller one of its kind."""
    READERS[name]("a")
    found = [(seconds(name, each.text(LARGE)), each) for each in TEXTS]
    longest, worst = max(found, key=lambda each: each[0])
    first = seconds(name, worst.text(SMALL))
    growth = longest / max(first, 1e-5) / (LARGE / SMALL)
    return Row(
        f"{name}: {worst.name}",
        f"{longest * 1e3:.0f} ms",
        f"{first * 1e3:.1f} ms for {SMALL // 1000} KB",
        growth,
        "≤ 2 × in proportion",
    )


def seconds(name: str, text: str) -> float:
    forget()
    started = time.thread_time()
    READERS[name](text)
    return time.thread_time() - started


def daemon_rows() -> Iterator[Row]:
    """Every text opened as a file of the home, in a real daemon."""
    with probed_daemon() as (process, port), tempfile.TemporaryDirectory() as home:
        connection = DaemonConnection(port)
        register(connection, "freeze", home)
        longest, worst = 0.0, ""
        for each in TEXTS:
            Path(home, "hostile.md").write_bytes(encoded(each.text(LARGE)))
            busiest(process)
            body = json_object(cmd="/open hostile.md", topic="file:freeze")
            connection.request("POST", "/exec", body, {"X-User-Id": "freeze"})
            stall = busiest(process)
            if stall > longest:
                longest, worst = stall, each.name
        connection.close()
    what = f"/open of {len(TEXTS)} texts of {LARGE // 1000} KB: longest loop stall"
    yield Row(f"{what} ({worst})", f"{longest:.0f} ms", "–", None, "≤ 100 ms")
