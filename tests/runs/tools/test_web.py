"""`webfetch`: formats, limits, redirects, and the yes it needs for this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stringd.runs.tools.context import DaemonPorts
from stringd.server.run_ports import page_text
from tests.runs.support import RunsServer, Watcher, sequential, serving, strategy
from tests.runs.tools.support import Call, Used, agent, finish, use
from tests.support.names import lead

pytestmark = pytest.mark.anyio

PAGE = b"<html><body><h1>Title</h1><p>Some <b>bold</b> text</p><script>x()</script></body></html>"
ANSWERS = {
    "/": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n" + PAGE,
    "/gone": b"HTTP/1.1 404 Not Found\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\nno",
    "/long": b"HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n"
    + b"x" * 60_000,
    "/loop": b"HTTP/1.1 302 Found\r\nLocation: /loop\r\nContent-Length: 0\r\n\r\n",
    "/away": b"HTTP/1.1 302 Found\r\nLocation: http://169.254.169.254/\r\n"
    b"Content-Length: 0\r\n\r\n",
    "/deep": b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nConnection: close\r\n\r\n"
    + b"<div>" * 600_000,
    "/slow": b"",
}


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[RunsServer]:
    async with serving(tmp_path, ports=DaemonPorts(html=page_text)) as running:
        yield running


@asynccontextmanager
async def site(heard: list[str] | None = None) -> AsyncIterator[str]:
    """A server of this machine; `heard` gets the path of every request."""
    never = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
        except asyncio.IncompleteReadError:
            # It gave up before it had asked.
            writer.close()
            return
        path = head.split()[1].decode()
        if heard is not None:
            heard.append(path)
        answer = ANSWERS.get(path, ANSWERS["/"])
        if not answer:
            await never.wait()
        writer.write(answer)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        never.set()
        server.close()


async def fetch(server: RunsServer, watcher: Watcher, work: Path, url: str, **more: object) -> str:
    used = await use(server, watcher, work, ("webfetch", {"url": url, **more}), decisions=["allow"])
    return used.output


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("markdown", "# Title\n\nSome **bold** text"),
        ("text", "Title\nSome\nbold\ntext"),
        ("html", PAGE.decode()),
    ],
)
async def test_a_page_comes_in_the_form_asked_for(
    server: RunsServer, watcher: Watcher, tmp_path: Path, form: str, expected: str
) -> None:
    async with site() as url:
        assert (await fetch(server, watcher, tmp_path, f"{url}/", format=form)).strip() == expected


async def test_errors_of_the_site_are_told_first(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    async with site() as url:
        assert await fetch(server, watcher, tmp_path, f"{url}/gone") == "[HTTP 404 Not Found]\nno"


async def test_long_pages_are_cut(server: RunsServer, watcher: Watcher, tmp_path: Path) -> None:
    async with site() as url:
        text = await fetch(server, watcher, tmp_path, f"{url}/long")
    assert text.startswith("x" * 50_000)
    assert len(text) < 50_100


@pytest.mark.parametrize("form", ["markdown", "text"])
async def test_a_page_too_deep_for_any_parser_is_refused(
    server: RunsServer, watcher: Watcher, tmp_path: Path, form: str
) -> None:
    async with site() as url:
        text = await fetch(server, watcher, tmp_path, f"{url}/deep", format=form)
    assert text.startswith("Error (command_failed): The page is nested more than 512 deep")


async def test_a_silent_site_times_out(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    async with site() as url:
        text = await fetch(server, watcher, tmp_path, f"{url}/slow", timeout=0.2)
    assert text.startswith("Error (timeout): ")


async def test_every_hop_is_checked(server: RunsServer, watcher: Watcher, tmp_path: Path) -> None:
    async with site() as url:
        text = await fetch(server, watcher, tmp_path, f"{url}/away")
    assert "cloud metadata service" in text


async def test_redirects_end(server: RunsServer, watcher: Watcher, tmp_path: Path) -> None:
    async with site() as url:
        call: Call = ("webfetch", {"url": f"{url}/loop"})
        used = await use(server, watcher, tmp_path, call, decisions=["allow"])
    assert used.output.startswith("Error (command_failed): More than 5 redirects")


def resources(used: Used) -> list[str]:
    return [request["resource"] for request in used.of("request_permission")]


async def test_a_no_connects_to_nobody_and_a_yes_counts_once(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    heard: list[str] = []
    async with site(heard) as url:
        call: Call = ("webfetch", {"url": f"{url}/"})
        used = await use(
            server, watcher, tmp_path, call, call, call, decisions=["deny", "allow", "deny"]
        )
    assert ["Title" in output for output in used.outputs] == [False, True, False]
    assert heard == ["/"]
    request = used.of("request_permission")[0]
    assert (request["operation"], request["resource"]) == ("fs.read", f"{url}/")
    assert request["details"]["address"] == "127.0.0.1"


CLIMBING = ["../admin", "%2e%2e/admin", "x/..%2f../admin", "x\\..\\..\\admin", "..;/admin"]


async def test_a_session_yes_covers_what_is_below_and_nothing_else(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    heard: list[str] = []
    async with site(heard) as url, site() as another:
        within: list[Call] = [("webfetch", {"url": f"{url}/app/{p}"}) for p in ("", "", "page")]
        beside = [f"{url}/", f"{url}/apple", f"{another}/app/"]
        beside += [f"{url}/app/{path}" for path in CLIMBING]
        others: list[Call] = [("webfetch", {"url": each}) for each in beside]
        decisions = ["allow-session", *(["deny"] * len(others))]
        used = await use(server, watcher, tmp_path, *within, *others, decisions=decisions)
    assert heard == ["/app/", "/app/", "/app/page"]
    asked = resources(used)
    assert asked[0] == f"{url}/app/"
    assert asked[4] == asked[5] == f"{url}/admin"


@pytest.mark.parametrize(("default", "fetched"), [("allow", ["/"]), ("deny", [])])
async def test_a_changed_policy_settles_it_unasked(
    server: RunsServer, watcher: Watcher, tmp_path: Path, default: str, fetched: list[str]
) -> None:
    heard: list[str] = []
    async with site(heard) as url:
        source = strategy(sequential("a"), a=agent(("webfetch", {"url": f"{url}/"})))
        path = str(server.strategy(source))
        await watcher.ask("prepare_run", runId="r", strategyPath=path)
        fields = {"runId": "r", "tool": "webfetch", "mode": "read", "default": default}
        await watcher.send("update_policy", **fields)
        await watcher.send("start_run", runId="r")
        used = await finish(watcher)
    assert heard == fetched
    expected = "denied by read-path-policy: not a public address"
    assert (expected in used.output) == (default == "deny")


async def test_a_name_of_this_machine_is_asked_about_with_its_address(
    server: RunsServer, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: list[str] = []
    lead(monkeypatch, {"harmless.test": ["127.0.0.1"]})
    async with site(heard) as url:
        address = url.replace("127.0.0.1", "harmless.test") + "/"
        call: Call = ("webfetch", {"url": address})
        used = await use(server, watcher, tmp_path, call, decisions=["deny"])
    details = used.of("request_permission")[0]["details"]
    assert (details["url"], details["address"]) == (address, "127.0.0.1")
    assert heard == []


async def test_a_name_that_moves_between_two_requests_is_asked_about_again(
    server: RunsServer, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    places = iter((["127.0.0.1"], ["127.0.0.2"]))

    class Moving(dict[str, list[str]]):
        def __missing__(self, _name: str) -> list[str]:
            return next(places)

        def __contains__(self, name: object) -> bool:
            return name == "moving.test"

    lead(monkeypatch, Moving())
    async with site() as url:
        call: Call = ("webfetch", {"url": url.replace("127.0.0.1", "moving.test") + "/loop"})
        used = await use(server, watcher, tmp_path, call, decisions=["allow", "deny"])
    asked = [request["details"]["address"] for request in used.of("request_permission")]
    assert asked == ["127.0.0.1", "127.0.0.2"]
    assert used.output.startswith("Error (permission_denied): ")


async def test_without_a_converter_only_html_is_offered(tmp_path: Path) -> None:
    async with serving(tmp_path) as server, site() as url:
        watcher = await server.watcher()
        refused = await fetch(server, watcher, tmp_path, f"{url}/")
    assert refused.startswith("Error (command_failed): Pages cannot be converted here")
