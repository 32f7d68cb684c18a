"""A browser on the daemon's wires: what pages of this machine can do, and others cannot."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.browser import PROGRAM, Browser, running_browser
from tests.support.daemon import Daemon
from tests.support.web import Reply, WebServer

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")

ROOT = Path(__file__).parents[1]
HELLO = ROOT / "src/stringd/runs/bundled/hello.yaml"
CLIENTS = ROOT / "docs/clients.md"

CONVERSE = """
  const talk = (first, last, next) => new Promise((resolve, reject) => {
    const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
    const heard = [];
    socket.onopen = () => socket.send(JSON.stringify(first));
    socket.onerror = () => reject(new Error("no WebSocket"));
    socket.onmessage = ({data}) => {
      const message = JSON.parse(data);
      heard.push(message);
      if (message.type === last) { socket.close(); resolve(heard); }
      else if (next[message.type]) socket.send(JSON.stringify(next[message.type]));
    };
  });
"""
"""`talk(first, last, next)`: says `first`, what `next` has for each message, and hears `last`."""

ASK = """
  const ask = async (path, body, headers) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, {
      method: "POST",
      headers: {"Content-Type": "application/json", "X-User-Id": "page", ...headers},
      body: JSON.stringify(body),
    });
    const pieces = [];
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let read = await reader.read(); !read.done; read = await reader.read())
      pieces.push(read.value);
    return [answer.status, pieces.join("")];
  };
"""
"""`ask(path, body, headers)`: the status and the text of an answer, read as it streams."""


@pytest.fixture(scope="module")
def pages() -> Iterator[int]:
    """The port of a web server whose every page is empty."""
    with WebServer(Reply("<!doctype html><title>a page</title>", "text/html")) as server:
        yield server.port


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory, pages: int) -> Iterator[Daemon]:
    friend = {"STRINGD_ALLOW_ORIGINS": f"http://friend.example:{pages}"}
    with Daemon(tmp_path_factory.mktemp("daemon"), **friend) as running:
        yield running


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    with running_browser(tmp_path_factory.mktemp("profile")) as running:
        yield running


def test_a_page_starts_a_run_and_another_one_follows_it_from_its_first_event(
    browser: Browser, daemon: Daemon, pages: int
) -> None:
    browser.open(f"http://localhost:{pages}/")
    run = {"runId": "from-a-page"}
    heard = browser.run(
        CONVERSE + "return talk(prepare, 'strategy_completed', {run_prepared: start});",
        port=daemon.port,
        prepare={"type": "prepare_run", "strategyPath": str(HELLO), **run},
        start={"type": "start_run", "input": "a real browser", **run},
    )
    assert heard[0]["type"] == "run_prepared"
    assert "You said: a real browser" in heard[-1]["result"]

    browser.open(f"http://127.0.0.1:{pages}/")
    replayed = browser.run(
        CONVERSE + "return talk(subscribe, 'strategy_completed', {});",
        port=daemon.port,
        subscribe={"type": "subscribe", "fromSeq": 1, **run},
    )
    assert [each["seq"] for each in replayed] == list(range(1, len(replayed) + 1))
    assert replayed == heard[1:]


@pytest.mark.parametrize("name", ["localhost", "127.0.0.1", "friend.example"])
def test_a_page_we_trust_runs_a_command_and_reads_its_events(
    browser: Browser, daemon: Daemon, pages: int, name: str
) -> None:
    browser.open(f"http://{name}:{pages}/")
    register_page(browser, daemon)
    status, stream = browser.run(
        ASK + "return ask('/exec', command);",
        port=daemon.port,
        command={"topic": "bash:page", "cmd": "echo from $((40 + 2))"},
    )
    assert status == 200
    events = [line for line in stream.splitlines() if line.startswith("event: ")]
    assert events == ["event: head", "event: content", "event: done"]
    assert "from 42" in stream


def test_the_example_for_pages_works_as_it_is_printed(
    browser: Browser, daemon: Daemon, pages: int
) -> None:
    [script] = re.findall(
        r"^```js\n(.*?)^```$", CLIENTS.read_text("utf-8"), re.DOTALL | re.MULTILINE
    )
    browser.open(f"http://localhost:{pages}/")
    register_page(browser, daemon, "default")
    events = browser.run(script.replace(":3100", f":{daemon.port}") + "return events;")
    assert events["head"]["ok"] is True
    assert events["content"].startswith("re: /info\nSession info")
    assert events["done"] == {}


def test_a_page_of_this_machine_speaks_mcp(browser: Browser, daemon: Daemon, pages: int) -> None:
    browser.open(f"http://localhost:{pages}/")
    status, text = browser.run(
        ASK + "return ask('/mcp', request, headers);",
        port=daemon.port,
        request={"jsonrpc": "2.0", "id": 1, "method": "tools/list"},
        headers={
            "Accept": "application/json, text/event-stream",
            "Mcp-Protocol-Version": "2025-11-25",
        },
    )
    assert status == 200
    assert '"name":"string"' in text


def test_a_foreign_page_gets_no_websocket(browser: Browser, daemon: Daemon, pages: int) -> None:
    browser.open(f"http://evil.example:{pages}/")
    opened = browser.run(
        """
        return new Promise((resolve) => {
          const socket = new WebSocket(`ws://127.0.0.1:${port}/ws`);
          socket.onopen = () => resolve(true);
          socket.onclose = () => resolve(false);
        });
        """,
        port=daemon.port,
    )
    assert opened is False


def test_a_frame_without_an_origin_gets_no_websocket(
    browser: Browser, daemon: Daemon, pages: int
) -> None:
    """A sandboxed frame says `Origin: null`, even on a page of this machine."""
    browser.open(f"http://localhost:{pages}/")
    opened = browser.run(
        """
        const heard = new Promise((resolve) => { onmessage = ({data}) => resolve(data); });
        const frame = document.createElement("iframe");
        frame.sandbox = "allow-scripts";
        frame.srcdoc = `<script>
          const socket = new WebSocket("ws://127.0.0.1:${port}/ws");
          socket.onopen = () => parent.postMessage(true, "*");
          socket.onclose = () => parent.postMessage(false, "*");
        </${"script"}>`;
        document.body.append(frame);
        return heard;
        """,
        port=daemon.port,
    )
    assert opened is False


def test_a_foreign_page_can_run_nothing_however_it_asks(
    browser: Browser, daemon: Daemon, pages: int, tmp_path: Path
) -> None:
    """With a preflight, and with a request simple enough to need none."""
    made = tmp_path / "made"
    browser.open(f"http://evil.example:{pages}/")
    status, text = browser.run(
        ASK + "return ask('/exec', command);",
        port=daemon.port,
        command={"topic": "bash:evil", "cmd": f"touch {made}"},
    )
    assert (status, "Forbidden: Origin is not allowed: http://evil.example" in text) == (403, True)
    browser.run(
        """
        await fetch(`http://127.0.0.1:${port}/chanflow`,
                    {method: "POST", mode: "no-cors", body: text});
        """,
        port=daemon.port,
        text=f"<𝒞=string:bash:evil>touch {made}</𝒞>",
    )
    assert not made.exists()


def test_a_name_that_comes_to_mean_this_machine_opens_nothing(
    browser: Browser, daemon: Daemon
) -> None:
    """DNS rebinding: for the browser, page and daemon have one origin."""
    browser.open(f"http://evil.example:{daemon.port}/health")
    told: list[Any] = browser.run(
        """
        const answer = await fetch("/users");
        const text = await answer.text();
        const opened = await new Promise((resolve) => {
          const socket = new WebSocket(`ws://evil.example:${port}/ws`);
          socket.onopen = () => resolve(true);
          socket.onclose = () => resolve(false);
        });
        return [answer.status, text, opened];
        """,
        port=daemon.port,
    )
    assert told[0] == 403
    assert "Host is not loopback" in told[1]
    assert told[2] is False


def register_page(browser: Browser, daemon: Daemon, user: str = "page") -> None:
    status, _ = browser.run(
        ASK + "return ask('/users', user);",
        port=daemon.port,
        user={"id": user, "home": str(daemon.home)},
    )
    assert status == 200
