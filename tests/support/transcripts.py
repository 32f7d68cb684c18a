"""Transcripts: Markdown pages whose fences are files, commands and the exact replies.

    ```file notes.md        a file in the user's home before the page starts
    ```send file:main       one command to a topic
    ```reply                what the HTTP wire answers, without the `re:` line
    ```transport            what the ChanFlow wire answers instead, inside its block
    ```call string          a call of an MCP tool, its arguments as JSON; the client works in
                            the folder `project` of the home, and no gate is there
    ```answer               what the model reads

`{home}` in a reply stands for the user's home, `{root}` for the directory all homes are in,
`v{version}` for ours, `{run}` for the end of a run's id, `{names}`
for the strategies there are.
`python -m tests.support.transcripts` rewrites every reply from a running daemon; read the diff
before you commit it.
"""

import http.client
import json
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from stringd import __version__
from tests.support.daemon import WAIT_SECONDS, Daemon

TRANSCRIPTS = Path(__file__).parent.parent / "transcripts"
_FENCE = re.compile(
    r"^(?P<ticks>`{3,})(?P<kind>file|send|reply|transport|call|answer)(?: (?P<name>[^\n]+))?\n"
    r"(?P<text>.*?)^(?P=ticks)$",
    re.MULTILINE | re.DOTALL,
)


_RUN = re.compile(r"\b(hello)-[0-9a-z][0-9a-z-]+")

_AT_HAND = re.compile(r"(Strategies at hand: ).*")


class Fence(NamedTuple):
    kind: str
    name: str
    text: str
    span: tuple[int, int]


def fences(page: str) -> list[Fence]:
    """The fences of a transcript, in order; the newline before the closing one is not text."""
    return [
        Fence(m["kind"], m["name"] or "", m["text"].removesuffix("\n"), m.span("text"))
        for m in _FENCE.finditer(page)
    ]


class Player:
    """Plays a transcript as a user of its own on a running daemon."""

    def __init__(self, daemon: Daemon, name: str) -> None:
        self._daemon = daemon
        self.user = name
        self.home = daemon.directory / "homes" / name
        self.home.mkdir(parents=True)
        self._request("POST", "/users", {"id": name, "home": str(self.home)})

    def put(self, fence: Fence) -> None:
        path = self.home / fence.name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"{fence.text}\n" if fence.text else "", encoding="utf-8", newline="")

    def exec(self, topic: str, command: str) -> str:
        """The reply on the HTTP wire without its `re:` line."""
        body = self._request("POST", "/exec", {"cmd": command, "topic": topic})
        line = next(line for line in body.split("\n") if line.startswith('data: "'))
        content: str = json.loads(line.removeprefix("data: "))
        return self._shown(content.partition("\n")[2])

    def chanflow(self, topic: str, command: str) -> str:
        """The payload of the reply block on the ChanFlow wire."""
        text = f"<𝒞=string:{topic}>\n{command}\n</𝒞>"
        reply = self._request("POST", "/chanflow", {"text": text})
        reply = re.sub(r' time="[^"]+"', "", reply)
        return self._shown(reply.removesuffix("\n"))

    def call(self, tool: str, arguments: str) -> str:
        """What a model reads when it has called a tool."""
        project = self.home / "project"
        project.mkdir(exist_ok=True)
        params = {"name": tool, "arguments": json.loads(arguments)}
        reply = self._request(
            "POST",
            "/mcp",
            {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params},
            {
                "Accept": "application/json, text/event-stream",
                "X-Stringd-Cwd": str(project),
                "X-Stringd-Gate-Socket": str(self.home / "gate.sock"),
            },
        )
        result = json.loads(reply.partition("data: {")[2].join(("{", "")) or reply)["result"]
        return self._shown("\n".join(part["text"] for part in result["content"]))

    def _shown(self, text: str) -> str:
        text = text.replace(str(self.home), "{home}")
        text = text.replace(str(self._daemon.directory), "{root}")
        text = _AT_HAND.sub(r"\1{names}", _RUN.sub(r"\1-{run}", text))
        return text.replace(f"v{__version__}", "v{version}")

    def _request(
        self, method: str, path: str, body: object, more: dict[str, str] | None = None
    ) -> str:
        connection = http.client.HTTPConnection(
            "127.0.0.1", self._daemon.port, timeout=WAIT_SECONDS
        )
        headers = {"Content-Type": "application/json", "X-User-Id": self.user, **(more or {})}
        connection.request(method, path, json.dumps(body).encode(), headers)
        response = connection.getresponse()
        text = response.read().decode()
        connection.close()
        assert response.status == 200, text
        return text


def play(player: Player, page: str) -> list[tuple[Fence, str]]:
    """Play a page; every expected reply with what came instead."""
    answers: list[tuple[Fence, str]] = []
    sent: Fence | None = None
    for fence in fences(page):
        if fence.kind == "file":
            player.put(fence)
        elif fence.kind in ("send", "call"):
            sent = fence
        else:
            assert sent is not None, "a reply needs a command before it"
            ask = {"reply": player.exec, "transport": player.chanflow, "answer": player.call}
            answers.append((fence, ask[fence.kind](sent.name, sent.text)))
    return answers


def rewrite(player: Player, path: Path) -> None:
    page = path.read_text(encoding="utf-8")
    for fence, answer in reversed(play(player, page)):
        start, end = fence.span
        page = f"{page[:start]}{answer}\n{page[end:]}"
    path.write_text(page, encoding="utf-8")


def main(names: list[str]) -> None:
    directory = Path(tempfile.mkdtemp())
    with Daemon(directory) as daemon:
        for path in sorted(TRANSCRIPTS.glob("*.md")):
            if not names or path.stem in names:
                rewrite(Player(daemon, path.stem), path)
    shutil.rmtree(directory, ignore_errors=True)


if __name__ == "__main__":
    main(sys.argv[1:])
