"""`webfetch`: formats, limits, redirects, and the yes it needs for this machine."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.runs.support import RunsServer, Watcher
from tests.runs.tools.support import Call, use

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
    "/slow": b"",
}


@asynccontextmanager
async def site() -> AsyncIterator[str]:
    never = asyncio.Event()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        answer = ANSWERS[head.split()[1].decode()]
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
