"""Long and heavy use of one daemon: silent readers, disks that stall, hours of mixed traffic."""

import asyncio
import json
import os
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import Any, Final, NamedTuple

import pytest
import yaml
from websockets.asyncio.client import ClientConnection, connect

from tests.runs.support import Watcher, scripted, sequential, strategy
from tests.server.test_bounds import at_rest, descriptors, is_well, open_files, resident, settled
from tests.server.test_ws import HANDSHAKE, text_frame_masked
from tests.support.commands import run
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person
from tests.support.small_disk import small_disk

__all__ = ["descriptors"]

pytestmark = [pytest.mark.anyio, pytest.mark.soak]

SILENT: Final = int(os.environ.get("SOAK_SILENT", "200"))
"""How many clients follow a run without reading."""
MEGABYTES: Final = int(os.environ.get("SOAK_MEGABYTES", "20"))
"""How much the run says to them."""
PIECE: Final = ("x" * 9_999 + " ") * 100
"""A megabyte in a hundred words, which is how it is streamed."""
MOST_BYTES: Final = 512 * 1024 * 1024
MINUTES: Final = float(os.environ.get("SOAK_MINUTES", "60"))
"""How long mixed traffic lasts."""
GROWTH: Final = 1.3


def url(daemon: Daemon) -> str:
    return f"ws://127.0.0.1:{daemon.port}/ws"


def written(daemon: Daemon, name: str, source: dict[str, Any]) -> str:
    path = daemon.directory / name
    path.write_text(yaml.safe_dump(source), "utf-8")
    return str(path)


@contextmanager
def silent(port: int, said: bytes) -> Iterator[None]:
    """A client that says this and never reads; little fits into its own buffer."""
    with socket.socket() as peer:
        peer.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 8192)
        peer.connect(("127.0.0.1", port))
        peer.sendall(said)
        yield


def subscriber(port: int) -> bytes:
    """What a client sends that follows the run."""
    subscribe = json.dumps({"type": "subscribe", "runId": "r"}).encode()
    return HANDSHAKE % port + text_frame_masked(subscribe)


def getter(path: str) -> bytes:
    return b"GET %b HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n" % path.encode()


async def read_to_the_end(client: ClientConnection) -> int:
    """How many characters a run says; a reader that falls behind asks for the rest."""
    said = 0
    while True:
        text = str(await client.recv())
        said += len(text)
        message = json.loads(text)
        if message.get("code") == "SUBSCRIBER_BEHIND":
            again = {"type": "subscribe", "runId": "r", "fromSeq": message["nextSeq"]}
            await client.send(json.dumps(again))
        elif message["type"] in ("strategy_completed", "strategy_error"):
            assert message["type"] == "strategy_completed", message
            return said


async def highest(daemon: Daemon, found: list[int]) -> None:
    """Note the most memory there was, until cancelled."""
    while True:
        found[0] = max(found[0], resident(daemon))
        await asyncio.sleep(0.05)


async def test_many_who_follow_a_run_without_reading_leave_it_well(tmp_path: Path) -> None:
    """One reads to the end; what waits for the others has a bound and is given back."""
    names = [f"a{number}" for number in range(MEGABYTES)]
    agents = {name: scripted("{message}") for name in names}
    source = strategy(sequential("human", *names), human={"type": "user"}, **agents)
    most = [0]
    with Daemon(tmp_path) as daemon:
        path = written(daemon, "s.yaml", source)
        memory, files = await at_rest(daemon)
        watching = asyncio.create_task(highest(daemon, most))
        async with connect(url(daemon), max_size=None, max_queue=None, proxy=None) as client:
            reading = Watcher(client)
            await reading.ask("prepare_run", runId="r", strategyPath=path)
            await reading.send("start_run", runId="r", input="")
            await reading.until("request_input")
            with ExitStack() as stack:
                for _ in range(SILENT):
                    stack.enter_context(silent(daemon.port, subscriber(daemon.port)))
                    stack.enter_context(silent(daemon.port, getter("/events")))
                began = time.monotonic()
                await reading.send("user_input", runId="r", agentName="human", text=PIECE)
                assert await read_to_the_end(client) > MEGABYTES * len(PIECE)
                took = time.monotonic() - began
                assert await is_well(daemon)
            with ExitStack() as stack:
                for _ in range(SILENT):
                    stack.enter_context(silent(daemon.port, getter("/runs/r/events.jsonl")))
                log = await asyncio.to_thread(request, daemon.port, "GET", "/runs/r/events.jsonl")
                assert json.loads(log.body.splitlines()[-1])["type"] == "strategy_completed"
        watching.cancel()
        print(f"\nread in {took:.1f} s; {memory >> 20} MB idle, {most[0] >> 20} most", end="")
        assert most[0] < MOST_BYTES
        ended = time.monotonic()
        await settled(daemon, memory, files)
        print(f", {resident(daemon) >> 20} after {time.monotonic() - ended:.0f} s")


def test_a_daemon_that_starts_on_a_full_disk_says_so(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with small_disk(daemon) as disk:
        disk.fill()
        with pytest.raises(AssertionError, match=r"No space left on device|disk is full") as failed:
            daemon.start()
        assert "Traceback" not in str(failed.value)
        daemon.stop()
        disk.clear()
        with daemon:
            Person(daemon.port, "u", daemon.home).gets("/info")


@contextmanager
def stalling_disk(daemon: Daemon) -> Iterator[None]:
    """The data directory on an ext4 image, which `fsfreeze` lets stall without any trick inside."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system")
    image = daemon.directory / "disk.img"
    image.write_bytes(b"")
    os.truncate(image, 32 * 1024 * 1024)
    daemon.data_dir.mkdir(mode=0o700)
    made = subprocess.run(["mkfs.ext4", "-q", str(image)], check=False, capture_output=True)
    mount = ["mount", "-o", "loop", str(image), str(daemon.data_dir)]
    if made.returncode or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("no image of a disk can be mounted here")
    try:
        daemon.data_dir.chmod(0o700)
        yield
    finally:
        subprocess.run(["umount", str(daemon.data_dir)], check=True)


@contextmanager
def frozen(directory: Path) -> Iterator[None]:
    subprocess.run(["fsfreeze", "-f", str(directory)], check=True)
    try:
        yield
    finally:
        subprocess.run(["fsfreeze", "-u", str(directory)], check=True)


async def test_a_disk_that_stalls_keeps_only_those_waiting_who_write(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with stalling_disk(daemon), daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.gets("/info", "file:reader")
        with frozen(daemon.data_dir):
            setting = asyncio.create_task(asyncio.to_thread(person.says, "/set {x} = 1"))
            for _ in range(100):
                assert await is_well(daemon)
            assert not setting.done()
        said = await setting
        assert said.head["ok"] or "Not saved" in said.text
        assert person.gets("/set {x} = 2")


class Measured(NamedTuple):
    """What must not grow with use."""

    memory: int
    files: int
    latency: float


async def test_mixed_traffic_leaves_memory_descriptors_and_latency_as_they_were(
    tmp_path: Path,
) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "u", daemon.home)
        person.put("page.md", "# Page\n\n## Part\n\n" + "text " * 2000)
        path = written(daemon, "s.yaml", strategy(sequential("a"), a=scripted("said {message}")))
        numbers = count()
        # Rooms, caches and pools fill once.
        for _ in range(40):
            await mixed(daemon, person, path, next(numbers))
        before = await measured(daemon)
        end = time.monotonic() + MINUTES * 60
        while time.monotonic() < end:
            await mixed(daemon, person, path, next(numbers))
        after = await measured(daemon)
        print(f"\n{next(numbers)} rounds: {before} → {after}, load {os.getloadavg()}")
        assert after.memory <= before.memory * GROWTH
        assert after.files <= before.files + 8
        # A machine that is busy now and was not before says nothing about the daemon.
        assert after.latency <= before.latency * GROWTH + 0.05


async def mixed(daemon: Daemon, person: Person, path: str, number: int) -> None:
    """A bit of everything: topics, edits, shells, clients that come and go, a run."""
    topic = f"file:t{number % 20}"
    commands = ["/open page.md", "/open #part", "/info", f"/set {{x}} = {number}", "/back"]
    for command in commands:
        await asyncio.to_thread(person.says, command, topic)
    await asyncio.to_thread(person.says, f"/write n{number % 10}.md\n# N {number}", topic)
    shell = f"bash:s{number % 3}"
    assert "4" in (await asyncio.to_thread(person.says, "echo $((2 + 2))", shell)).text
    await asyncio.to_thread(person.says, "/close", shell if number % 30 == 0 else "file:gone")
    await asyncio.to_thread(request, daemon.port, "GET", "/nothing")
    if number % 5 == 0:
        async with connect(url(daemon), max_queue=None, proxy=None) as client:
            await one_run(client, path, f"r{number % 50}")


async def one_run(client: ClientConnection, path: str, run_id: str) -> None:
    watcher = Watcher(client)
    await watcher.ask("delete_run", runId=run_id)
    ended = await watcher.run(path, "hello", run_id)
    assert ended[-1]["type"] == "strategy_completed", ended[-1]


async def measured(daemon: Daemon) -> Measured:
    """Once everything that was given back is back."""
    latencies = []
    for _ in range(300):
        started = time.perf_counter()
        assert await is_well(daemon)
        latencies.append(time.perf_counter() - started)
    # Memory is given back when connections are looked after, every few seconds.
    memory = files = 0
    for _ in range(15):
        await asyncio.sleep(1)
        memory, files = resident(daemon), open_files(daemon)
    return Measured(memory, files, sorted(latencies)[len(latencies) // 2])


def test_the_command_line_still_works_on_a_disk_that_fills(tmp_path: Path) -> None:
    daemon = Daemon(tmp_path)
    with small_disk(daemon) as disk, daemon:
        Person(daemon.port, "u", daemon.home).gets("/info")
        disk.fill()
        env = daemon.child_environment()
        for command in (("status",), ("runs",), ("doctor",)):
            done = run("stringd", *command, env=env)
            assert "Traceback" not in done.out + done.err
        assert request(daemon.port, "GET", "/health").status == 200
