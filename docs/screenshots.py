"""`python docs/screenshots.py [folder]`: pictures of the page, taken of the real thing.

A daemon of its own gets some invented runs and topics; Chromium shows them. Nothing it shows names
a path of the machine it is taken on. Needs Chromium and Playwright.
"""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.request import Request, urlopen

import yaml
from playwright.sync_api import Browser, sync_playwright
from websockets.sync.client import ClientConnection, connect

from stringd.client.daemon import start, stop

DOCS: Final = Path(__file__).parent
WAIT_SECONDS: Final = 30
PLAN: Final = "# Raise the upload limit\n\n1. find the limit\n2. raise it\n3. publish\n"


class Picture(NamedTuple):
    """`view` is what follows /ui/; a `run` is named by its strategy."""

    name: str
    view: str
    width: int = 1280
    height: int = 800
    scheme: str = "light"
    click: str = ""


def agent(*replies: Any, **more: Any) -> dict[str, Any]:
    return {"model": "demo/script", "providerOptions": {"demo": {"script": list(replies)}}, **more}


def call(tool: str, **arguments: Any) -> dict[str, Any]:
    return {"name": tool, "args": arguments}


LIMIT: Final = call("create_file", path="upload.conf", content="client_max_body_size 64m;\n")
PUSH: Final = call(
    "run_command", command="git push origin upload-limit", network=True, reason="to publish"
)
QUESTION: Final = "Two of the five sources are behind a paywall. Go on with three?"
RUNS: Final[dict[str, dict[str, Any]]] = {
    "Code review": {"reviewer": agent("Change requested: check the path before joining it.")},
    "Nightly triage": {"collect": agent("41 issues, 7 groups."), "publish": agent("Published.")},
    "Fix and review": {
        "reader": agent("The proxy refuses uploads above **8 MB**; the app allows 64."),
        "coder": agent(
            {"chunks": ["I raise the limit in the proxy."], "tools": [LIMIT]},
            {"tools": [PUSH]},
            "Done.",
            tools=["create_file", "run_command"],
        ),
    },
    "Research": {
        "critic": agent(
            {"tools": [call("ask_question", question=QUESTION)]}, "Fine.", tools=["ask_question"]
        )
    },
}
PICTURES: Final = (
    Picture("inbox-light", "", click=".waiting .what button"),
    Picture("inbox-dark", "", scheme="dark", click=".waiting .what button"),
    Picture("inbox-phone", "", 390, 780, click=".waiting .what button"),
    Picture("run-light", "run/Fix and review"),
    Picture("run-dark", "run/Fix and review", scheme="dark"),
    Picture("run-phone", "run/Fix and review", 390, 780),
)


def main(folder: Path) -> None:
    """Take every picture into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    program = shutil.which("chromium") or shutil.which("google-chrome")
    if program is None:
        sys.exit("Chromium is not installed")
    with daemon() as (port, work), sync_playwright() as playwright:
        found = fill(port, work)
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])
        for picture in PICTURES:
            take(browser, port, picture, found, folder / f"{picture.name}.png")
        browser.close()


@contextmanager
def daemon() -> Iterator[tuple[int, Path]]:
    """A daemon with a home of its own, and a folder to work in."""
    from socket import create_server

    with tempfile.TemporaryDirectory() as made:
        home, work = Path(made) / "home", Path(made) / "projects" / "tidewater"
        home.mkdir()
        work.mkdir(parents=True)
        os.environ.update(HOME=str(home), STRINGD_DATA_DIR=str(home / "data"))
        with create_server(("127.0.0.1", 0)) as free:
            port = int(free.getsockname()[1])
        if not start(port):
            sys.exit("the daemon did not start")
        try:
            yield port, work
        finally:
            stop(port)


def fill(port: int, work: Path) -> dict[str, str]:
    """Open topics and start runs; returns the runs' ids by strategy."""
    post(port, "/users", {"id": "default", "home": str(work)})
    (work / "plan.md").write_text(PLAN, "utf-8")
    for topic, command in (
        ("file:plan", "/open plan.md"),
        ("bash:dev", "echo ready"),
        ("bash:tests", "false"),
    ):
        post(port, "/exec", {"topic": topic, "cmd": command})
    found: dict[str, str] = {}
    with connect(f"ws://127.0.0.1:{port}/ws", max_size=None, proxy=None) as socket:
        for name, agents in RUNS.items():
            steps = [{"agent": each} for each in agents]
            flow = {"name": "Main", "type": "sequential", "steps": steps}
            path = work / f"{name.lower().replace(' ', '-')}.yaml"
            source = {"version": "1.0", "name": name, "agents": agents, "flow": flow}
            path.write_text(yaml.safe_dump(source, sort_keys=False), "utf-8")
            send(socket, type="prepare_run", strategyPath=str(path), cwd=str(work))
            found[name] = heard(socket, "run_prepared")["runId"]
            send(socket, type="start_run", runId=found[name], input="the upload limit")
            heard(socket, "strategy_completed", "request_permission", "request_question")
    return found


def send(socket: ClientConnection, **message: Any) -> None:
    socket.send(json.dumps(message))


def heard(socket: ClientConnection, *types: str) -> dict[str, Any]:
    while True:
        message: dict[str, Any] = json.loads(socket.recv(timeout=WAIT_SECONDS))
        if message["type"] in ("error", "strategy_error"):
            sys.exit(f"the daemon answered: {message}")
        if message["type"] in types:
            return message


def post(port: int, path: str, body: dict[str, str]) -> None:
    headers = {"Content-Type": "application/json", "X-User-Id": "default"}
    data = json.dumps(body).encode()
    with urlopen(Request(f"http://127.0.0.1:{port}{path}", data, headers)) as answer:
        answer.read()


def take(browser: Browser, port: int, picture: Picture, runs: dict[str, str], target: Path) -> None:
    dark = picture.scheme == "dark"
    context = browser.new_context(
        viewport={"width": picture.width, "height": picture.height},
        color_scheme="dark" if dark else "light",
    )
    page = context.new_page()
    view = picture.view
    for name, run_id in runs.items():
        view = view.replace(name, run_id)
    page.goto(f"http://127.0.0.1:{port}/ui/{view}")
    page.locator(".waiting, .transcript").first.wait_for()
    if picture.click:
        page.locator(picture.click).first.click()
    page.locator(".prompt").first.wait_for()
    page.evaluate("document.fonts.ready")
    page.screenshot(path=target, animations="disabled")
    context.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else DOCS / "page")
