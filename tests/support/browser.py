"""A real browser without a window, driven through its DevTools."""

import json
import shutil
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

from tests.support.daemon import WAIT_SECONDS

PROGRAM = shutil.which("chromium") or shutil.which("chromium-browser")


class ScriptError(Exception):
    """What a script on the page threw."""


class Browser:
    """One tab. Names under `.example` lead to this machine, as a hostile name server would say."""

    def __init__(self, wire: ClientConnection) -> None:
        self._wire = wire
        self._ids = iter(range(1, 1_000_000))
        target = self._ask("Target.createTarget", url="about:blank")["targetId"]
        attached = self._ask("Target.attachToTarget", targetId=target, flatten=True)
        self._session = attached["sessionId"]
        self._ask("Page.enable", session=self._session)

    def open(self, address: str) -> None:
        """Show a page, and wait until it is loaded."""
        shown = self._ask("Page.navigate", session=self._session, url=address)
        assert "errorText" not in shown, f"{address}: {shown['errorText']}"
        while self._receive().get("method") != "Page.loadEventFired":
            pass

    def run(self, script: str, **values: object) -> Any:
        """Run the body of an async function on the page; it finds the values by their names."""
        names = "".join(f"const {name} = {json.dumps(value)};" for name, value in values.items())
        done = self._ask(
            "Runtime.evaluate",
            session=self._session,
            expression=f"(async () => {{ {names} {script} }})()",
            awaitPromise=True,
            returnByValue=True,
        )
        if "exceptionDetails" in done:
            raise ScriptError(done["exceptionDetails"]["exception"].get("description"))
        return done["result"].get("value")

    def ask(self, method: str, **params: object) -> Any:
        """One question to the DevTools of this tab."""
        return self._ask(method, self._session, **params)

    def _ask(self, method: str, session: str | None = None, **params: object) -> Any:
        number = next(self._ids)
        of = {"sessionId": session} if session else {}
        self._wire.send(json.dumps({"id": number, "method": method, "params": params, **of}))
        while (message := self._receive()).get("id") != number:
            pass
        assert "error" not in message, f"{method}: {message['error']}"
        return message["result"]

    def _receive(self) -> dict[str, Any]:
        message: dict[str, Any] = json.loads(self._wire.recv(timeout=WAIT_SECONDS))
        return message


@contextmanager
def running_browser(profile: Path) -> Iterator[Browser]:
    """A browser with a profile of its own that reaches nothing but this machine."""
    assert PROGRAM is not None
    command = [
        PROGRAM,
        "--headless=new",
        # Root, as CI is, gets no sandbox; the pages shown are our own.
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
        "--disable-background-networking",
        "--no-first-run",
        "--host-resolver-rules=MAP *.example 127.0.0.1",
        "--remote-debugging-port=0",
        f"--user-data-dir={profile}",
        "about:blank",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if "DevTools listening on" in line:
                break
        assert said, f"{PROGRAM} ended without a word"
        address = said[-1].split()[-1]
        assert address.startswith("ws://"), "".join(said)
        # Whatever else it says is read too: a full pipe would stop it.
        reading = threading.Thread(target=process.stderr.read)
        reading.start()
        try:
            with connect(address, max_size=None, proxy=None) as wire:
                yield Browser(wire)
                wire.send(json.dumps({"id": 0, "method": "Browser.close"}))
                process.wait(WAIT_SECONDS)
        finally:
            process.kill()
            reading.join(WAIT_SECONDS)
