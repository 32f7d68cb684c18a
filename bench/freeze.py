"""Hostile text: how much longer readers take for larger ones, and how long the loop is busy.

`BENCH_FREEZE_BYTES` is the larger size, `BENCH_FREEZE_EVERY` takes only every so many texts.
"""

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from bench.bounds import busiest, probed_daemon
from bench.hostile_ways import WAYS, hostile_ways
from bench.table import Row
from tests.support.freeze.hostile import HOSTILE
from tests.support.freeze.readers import IN_WORKERS, READERS, forget

TITLE = "Hostile text"
SMALL = 10_000
LARGE = int(os.environ.get("BENCH_FREEZE_BYTES", "160000"))
EVERY = int(os.environ.get("BENCH_FREEZE_EVERY", "1"))
TEXTS = HOSTILE[::EVERY]
ELSEWHERE = 4
"""Of the texts every so many take the ways that are slower than a file."""


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
    """Texts that reach a real daemon: all of them as files, some by every other way."""
    with (
        probed_daemon() as (process, port),
        tempfile.TemporaryDirectory() as home,
        hostile_ways(port, Path(home)) as ways,
    ):
        for way in WAYS:
            texts = TEXTS if way == "file" else TEXTS[::ELSEWHERE]
            # The rooms that load with the first text are not what this measures.
            ways.bring("a")
            ways.go(way)
            longest, worst = 0.0, ""
            for each in texts:
                ways.bring(each.text(LARGE))
                busiest(process)
                ways.go(way)
                stall = busiest(process)
                if stall > longest:
                    longest, worst = stall, each.name
            what = f"{way}, {len(texts)} texts of {LARGE // 1000} KB: longest loop stall ({worst})"
            yield Row(what, f"{longest:.0f} ms", "–", None, "≤ 100 ms")
