"""The page with much to show: long tasks, memory, and what it costs the daemon.

500 topics, 200 runs and a run of 50,000 events in a real daemon, looked at with a real Chromium. A
task of the browser counts by the processor time its thread used: what else the machine does is not
the page's doing. Needs Chromium and Playwright.
"""

import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from threading import Event, Thread
from typing import Any, NamedTuple

import yaml
from playwright.sync_api import Browser, Page, sync_playwright
from websockets.sync.client import connect

from bench.table import Row
from tests.support.browser import PROGRAM
from tests.support.daemon import Daemon
from tests.support.http import User

TITLE = "The page"
TOPICS, RUNS, ROUNDS = 500, 200, 560
IDLE_SECONDS = float(os.environ.get("BENCH_PAGE_IDLE", "60"))
STREAM_SECONDS = float(os.environ.get("BENCH_PAGE_STREAM", "60"))
PAGES = 20
LONG_MS = 100.0
TICKS = os.sysconf("SC_CLK_TCK")
ARGUMENTS = ["--no-sandbox", "--js-flags=--expose-gc", "--enable-precise-memory-info"]
READS = {"name": "read_file", "args": {"path": "notes.md"}}
_numbers = count(1)


class Tasks(NamedTuple):
    """The longest task of the page in milliseconds: processor time, and by the clock."""

    used: float
    passed: float


def rows() -> Iterator[Row]:
    assert PROGRAM is not None, "Chromium is not installed"
    with tempfile.TemporaryDirectory() as name, Daemon(Path(name)) as daemon:
        fill(daemon)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
            yield from smooth_rows(browser, daemon)
            yield memory_row(browser, daemon)
            yield idle_row(browser, daemon)
            browser.close()
        apart(daemon)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=PROGRAM, args=ARGUMENTS)
            yield crowd_row(browser, daemon)
            browser.close()


def apart(daemon: Daemon) -> None:
    """The daemon has a core that no browser takes from it, where there are two."""
    assert daemon.process is not None
    first, *others = sorted(os.sched_getaffinity(0))
    if not others:
        return
    os.sched_setaffinity(daemon.process.pid, {first})
    # A browser inherits it.
    os.sched_setaffinity(0, set(others))


def fill(daemon: Daemon) -> None:
    """Much to look at."""
    user = User(daemon.port, "default", daemon.home)
    (daemon.home / "notes.md").write_text("# Notes\n\n" + "A line of text.\n" * 40, "utf-8")
    for number in range(TOPICS):
        user.exec("/open notes.md", f"file:t{number}")
    with wire(daemon) as socket:
        for number in range(RUNS):
            run(socket, daemon, f"r{number}", agents({"chunks": ["It is done."]}))
        said = {"thinking": "Let me see.", "chunks": [f"Line {n} of it.\n" for n in range(80)]}
        calls = agents({**said, "tools": [READS] * 5}, said, tools=["read_file"])
        run(socket, daemon, "long", calls, cycles=ROUNDS)


def agents(*replies: Any, **more: Any) -> dict[str, Any]:
    return {"model": "demo/script", "providerOptions": {"demo": {"script": list(replies)}}, **more}


@contextmanager
def wire(daemon: Daemon) -> Iterator[Any]:
    address = f"ws://127.0.0.1:{daemon.port}/ws"
    with connect(address, max_size=None, proxy=None) as socket:
        yield socket


def run(socket: Any, daemon: Daemon, run_id: str, agent: Any, cycles: int = 0) -> None:
    """Run one to its end."""
    prepare(socket, daemon, run_id, agent, cycles)
    socket.send(json.dumps({"type": "start_run", "runId": run_id, "input": "go"}))
    heard(socket, "strategy_completed", "strategy_error")


def prepare(socket: Any, daemon: Daemon, run_id: str, agent: Any, cycles: int = 0) -> None:
    flow: dict[str, Any] = {"name": "Main", "type": "sequential", "steps": [{"agent": "a"}]}
    if cycles:
        flow |= {"type": "cycle", "cycles": cycles}
    source = {"name": "Test", "version": "1.0", "agents": {"a": agent}, "flow": flow}
    path = daemon.directory / f"{run_id}.yaml"
    path.write_text(yaml.safe_dump(source, sort_keys=False), "utf-8")
    asked = {"type": "prepare_run", "runId": run_id, "strategyPath": str(path)}
    socket.send(json.dumps({**asked, "cwd": str(daemon.home)}))
    heard(socket, "run_prepared")


def heard(socket: Any, *types: str) -> None:
    starts = tuple(f'{{"type":"{each}"' for each in (*types, "error"))
    while not (frame := socket.recv()).startswith(starts):
        pass
    assert not frame.startswith('{"type":"error"'), frame


@contextmanager
def busy_topics(daemon: Daemon) -> Iterator[None]:
    """Commands in topics and short runs all the time."""
    over = Event()

    def work() -> None:
        user = User(daemon.port, "default", daemon.home)
        with wire(daemon) as socket:
            while not over.wait(0.02):
                number = next(_numbers)
                user.exec("/info", f"file:t{number % TOPICS}")
                if number % 25 == 0:
                    run(socket, daemon, f"busy{number}", agents({"chunks": ["done"]}))

    thread = Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def smooth_rows(browser: Browser, daemon: Daemon) -> Iterator[Row]:
    for view, box, what in (
        ("topics", "main .scroll", f"topics, {TOPICS} of them"),
        ("runs", "main .scroll", f"runs, {RUNS} of them"),
        ("events", "main .scroll", "events"),
        ("", "main", "inbox"),
        ("run/long", ".transcript", f"a run of {events(daemon):,} events"),
    ):
        page = browser.new_page(viewport={"width": 1280, "height": 900})
        with busy_topics(daemon):
            found = longest_task(browser, page, f"{address(daemon)}{view}", box)
        page.close()
        yield Row(
            f"longest task, {what}, scrolled while it changes",
            f"{found.used:.0f} ms ({found.passed:.0f} by the clock)",
            f"{LONG_MS:.0f} ms",
            found.used / LONG_MS,
            "< 1",
        )


def address(daemon: Daemon) -> str:
    return f"http://127.0.0.1:{daemon.port}/ui/"


def events(daemon: Daemon) -> int:
    with (Path(daemon.data_dir) / "runs" / "events" / "long.jsonl").open("rb") as file:
        return sum(1 for _ in file)


def longest_task(browser: Browser, page: Page, where: str, box: str) -> Tasks:
    """Open, wait until all is there, then scroll up and down while things change."""
    browser.start_tracing(page=page, categories=["toplevel", "devtools.timeline"])
    page.goto(where)
    page.locator(".live").get_by_text("live").wait_for()
    page.locator(box).first.wait_for()
    page.wait_for_timeout(4000)
    for by in (400, -400) * 3:
        for _ in range(20):
            page.evaluate("([box, by]) => document.querySelector(box)?.scrollBy(0, by)", [box, by])
            page.wait_for_timeout(30)
    return read_tasks(browser.stop_tracing())


def read_tasks(trace: bytes) -> Tasks:
    found = json.loads(trace)["traceEvents"]
    drawing = {
        (each["pid"], each["tid"])
        for each in found
        if each.get("name") == "thread_name" and each["args"]["name"] == "CrRendererMain"
    }
    tasks = [
        Tasks(each.get("tdur", 0) / 1000, each.get("dur", 0) / 1000)
        for each in found
        if each.get("name") in ("RunTask", "ThreadControllerImpl::RunTask")
        and (each["pid"], each["tid"]) in drawing
    ]
    return max(tasks, default=Tasks(0, 0))


def memory_row(browser: Browser, daemon: Daemon) -> Row:
    """The heap after a collection, before and after a stream of events."""
    page = browser.new_page()
    page.goto(address(daemon))
    page.locator(".live").get_by_text("live").wait_for()
    with busy_topics(daemon):
        page.wait_for_timeout(STREAM_SECONDS * 200)
        before = heap(page)
        page.wait_for_timeout(STREAM_SECONDS * 800)
        after = heap(page)
    page.close()
    return Row(
        f"memory of the page over {STREAM_SECONDS * 0.8:.0f} s of events",
        f"{after / 1e6:.1f} MB",
        f"{before / 1e6:.1f} MB",
        after / before,
        "< 1.2",
    )


def heap(page: Page) -> int:
    page.evaluate("() => gc()")
    used: int = page.evaluate("() => performance.memory.usedJSHeapSize")
    return used


def idle_row(browser: Browser, daemon: Daemon) -> Row:
    page = browser.new_page()
    page.goto(address(daemon))
    page.locator(".live").get_by_text("live").wait_for()
    page.wait_for_timeout(2000)
    before, began = cpu(daemon), time.monotonic()
    page.wait_for_timeout(IDLE_SECONDS * 1000)
    share = (cpu(daemon) - before) / (time.monotonic() - began)
    page.close()
    return Row(
        f"idle daemon with a page open, {IDLE_SECONDS:.0f} s",
        f"{share:.2%} of a core",
        "1 %",
        share / 0.01,
        "< 1",
    )


def crowd_row(browser: Browser, daemon: Daemon) -> Row:
    """Processor time of a run that says much, seen by nobody and by many pages."""
    said = {"chunks": [f"word {n} " for n in range(200)], "tools": [READS]}
    agent = agents(said, {"chunks": ["and so on"], "delayMs": 200}, tools=["read_file"])
    spent = []
    for pages in (0, PAGES):
        with wire(daemon) as socket:
            prepare(socket, daemon, f"crowd{pages}", agent, 25)
            opened = [browser.new_page() for _ in range(pages)]
            for page in opened:
                page.goto(f"{address(daemon)}run/crowd{pages}")
                page.locator(".live").get_by_text("live").wait_for()
            before, began = cpu(daemon), time.monotonic()
            socket.send(json.dumps({"type": "start_run", "runId": f"crowd{pages}", "input": ""}))
            heard(socket, "strategy_completed")
            spent.append((time.monotonic() - began, cpu(daemon) - before))
            for page in opened:
                page.close()
    (alone, used), (watched, more) = spent
    return Row(
        f"a busy run with {PAGES} pages on it",
        f"{watched:.1f} s ({more:.1f} s of processor)",
        f"{alone:.1f} s without ({used:.1f} s)",
        watched / alone,
        "< 1.1",
    )


def cpu(daemon: Daemon) -> float:
    """Seconds of processor time the daemon has used."""
    assert daemon.process is not None
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text("ascii").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS
