"""A network of named hosts, behind each kind of walls: what is listed, and nothing else."""

import asyncio
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from stringd.net.addresses import claim_port
from stringd.net.host_proxy import HostProxy, hosts_in
from stringd.system.sandbox import (
    Landlock,
    Network,
    SandboxError,
    SandboxSpec,
    WayOut,
    enclose,
)
from tests.support.web import Reply, WebServer
from tests.system.sandbox.cage import NOBODY, Cage, Done, Kind, cage, kinds

ASK = """
import sys, urllib.error, urllib.request
for url in sys.argv[1:]:
    try:
        with urllib.request.urlopen(url, timeout=30) as answer:
            print(answer.status, answer.read().decode())
    except urllib.error.HTTPError as error:
        print(error.code, error.read().decode())
    except OSError as error:
        print("FAILED", error)
"""
AROUND = """
import os, socket, sys
port = int(sys.argv[1])
for name in [each for each in os.environ if "proxy" in each.lower()]:
    del os.environ[name]
for kind, address in (
    (socket.SOCK_STREAM, ("127.0.0.1", port)),
    (socket.SOCK_STREAM, ("10.255.255.1", port)),
    (socket.SOCK_DGRAM, ("10.255.255.1", 53)),
):
    try:
        with socket.socket(socket.AF_INET, kind) as each:
            each.settimeout(5)
            each.connect(address)
            each.send(b"GET / HTTP/1.0\\r\\n\\r\\n")
            print("REACHED", address)
    except OSError as error:
        print("refused", address)
"""


def _id(kind: Kind) -> str:
    return f"{kind.walls}-{kind.account}"


@pytest.fixture(params=[each for each in kinds() if each.walls != "landlock alone"], ids=_id)
def networked(request: pytest.FixtureRequest) -> Iterator[Cage]:
    with cage(request.param) as found:
        if isinstance(found, str):
            pytest.skip(found)
        if isinstance(found.walls, Landlock) and not found.walls.freezes:
            pytest.skip("Landlock alone does not judge this: it knows ports, not hosts")
        yield found


def run(there: Cage, program: str, *words: str, hosts: list[str]) -> Done:
    async def inside() -> Done:
        proxy = HostProxy(hosts_in(hosts))
        directory = proxy.way_out.proxy.parent
        try:
            if there.kind.account == "nobody":
                for path in (directory, proxy.way_out.proxy):
                    os.chown(path, NOBODY, NOBODY)
            spec = replace(there.spec(), network=Network.HOSTS, way_out=proxy.way_out)
            (there.workspace / "program.py").write_text(program)
            script = f"$PY $WS/program.py {' '.join(words)}"
            return await asyncio.to_thread(there.run, script, spec)
        finally:
            await proxy.close()
            assert not directory.exists()

    return asyncio.run(inside())


def test_a_command_reaches_the_hosts_of_its_list_and_no_other(networked: Cage) -> None:
    with WebServer(Reply("hello")) as listed, WebServer() as other:
        host, closed = f"127.0.0.1:{listed.port}", f"127.0.0.1:{other.port}"
        done = run(networked, ASK, f"'http://{host}/a?b=c'", f"http://{closed}/", hosts=[host])

    assert done.output.splitlines()[0] == "200 hello"
    assert f"403 stringd: {closed} is not on the list ({host})" in done.output
    assert [(each.target, each.headers["host"]) for each in listed.asked] == [("/a?b=c", host)]
    assert other.asked == []


def test_nothing_leads_around_the_proxy(networked: Cage) -> None:
    with WebServer() as listed:
        done = run(networked, AROUND, str(listed.port), hosts=[f"127.0.0.1:{listed.port}"])

    assert done.output.count("refused") == 3, done.output
    assert listed.asked == []


def test_ports_of_the_daemon_are_refused_though_they_are_listed(networked: Cage) -> None:
    with WebServer() as own:
        claim_port(own.port)
        host = f"127.0.0.1:{own.port}"
        done = run(networked, ASK, f"http://{host}/", hosts=[host])

    assert f"403 stringd: {host} is a port of the daemon" in done.output
    assert own.asked == []


def test_walls_that_cannot_tell_hosts_apart_say_so(tmp_path: Path) -> None:
    walls = Landlock(6, freezes=False)
    spec = SandboxSpec(network=Network.HOSTS, way_out=WayOut(tmp_path / "proxy"))
    with pytest.raises(SandboxError, match=r"needs a network of its own.*install bubblewrap"):
        enclose(spec, ["true"], {}, walls)


def test_a_network_of_named_hosts_without_a_proxy_is_refused() -> None:
    with pytest.raises(SandboxError, match="needs a proxy"):
        enclose(SandboxSpec(network=Network.HOSTS), ["true"], {})
