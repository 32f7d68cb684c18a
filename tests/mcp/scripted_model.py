"""A model that is a script, for real coding agents: it calls tools in order and reads answers."""

import json
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, NamedTuple


class ToolUse(NamedTuple):
    """What the model asks for next."""

    tool: str
    arguments: dict[str, Any]


Step = Callable[[str], ToolUse]
"""From what the last tool answered to the next call."""


class Script:
    """The steps of a conversation, and every answer the model read."""

    def __init__(self, steps: Sequence[Step]) -> None:
        self.steps = steps
        self.read: list[str] = []
        self.offered: list[str] = []
        """The tools of every request that has any, each as JSON."""
        self.url = ""

    def next(self, answers: list[str]) -> ToolUse | None:
        """The call after these answers; None when the script is at its end."""
        self.read = answers
        if len(answers) >= len(self.steps):
            return None
        return self.steps[len(answers)](answers[-1] if answers else "")


@contextmanager
def served(script: Script) -> Iterator[None]:
    """Serve a script as Anthropic's and as OpenAI's interface at `script.url`."""
    handler = type("Model", (_Model,), {"script": script})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    script.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Model(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    script: Script

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002
        pass

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers.get("content-length", 0))) or b"{}")
        if asked.get("tools"):
            self.script.offered.append(json.dumps(asked["tools"]))
        events = self._openai(asked) if "/responses" in self.path else self._anthropic(asked)
        text = "".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n" for e in events)
        self._send("text/event-stream", text.encode())

    def do_GET(self) -> None:
        self._send("application/json", b'{"data": [], "models": []}')

    def _anthropic(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        names = [tool.get("name", "") for tool in asked.get("tools", [])]
        blocks = [
            block
            for message in asked.get("messages", [])
            if isinstance(message["content"], list)
            for block in message["content"]
        ]
        answers = [_text(each["content"]) for each in blocks if each["type"] == "tool_result"]
        # Small requests of the client's own, such as for a title, have no tools.
        use = self.script.next(answers) if "mcp__string__string" in names else None
        block: dict[str, Any] = {"type": "text", "text": ""}
        delta, stop = {"type": "text_delta", "text": "Finished."}, "end_turn"
        if use is not None:
            ident = f"t{len(answers)}"
            name = f"mcp__string__{use.tool}"
            block = {"type": "tool_use", "id": ident, "name": name, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(use.arguments)}
            stop = "tool_use"
        usage = {"input_tokens": 1, "output_tokens": 1}
        message: dict[str, Any] = {"id": "m1", "type": "message", "role": "assistant"}
        message |= {"model": "m", "content": [], "stop_reason": None, "stop_sequence": None}
        message["usage"] = usage
        yield {"type": "message_start", "message": message}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        ending = {"stop_reason": stop, "stop_sequence": None}
        yield {"type": "message_delta", "delta": ending, "usage": usage}
        yield {"type": "message_stop"}

    def _openai(self, asked: dict[str, Any]) -> Iterator[dict[str, Any]]:
        items = [each for each in asked.get("input", []) if isinstance(each, dict)]
        outputs = [each for each in items if each.get("type") == "function_call_output"]
        use = self.script.next([_text(each["output"]) for each in outputs])
        item: dict[str, Any] = {
            "type": "message",
            "id": "msg1",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "Finished."}],
        }
        if use is not None:
            ident = f"call{len(outputs)}"
            item = {"type": "function_call", "id": f"f{ident}", "call_id": ident}
            item |= _named(asked.get("tools", []), use.tool)
            item["arguments"] = json.dumps(use.arguments)
        usage = {"input_tokens": 1, "output_tokens": 1, "total_tokens": 2}
        yield {"type": "response.created", "response": {"id": "r1"}}
        yield {"type": "response.output_item.done", "output_index": 0, "item": item}
        yield {"type": "response.completed", "response": {"id": "r1", "usage": usage}}

    def _send(self, kind: str, body: bytes) -> None:
        self.send_response(200)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _named(tools: list[dict[str, Any]], wanted: str) -> dict[str, str]:
    """How this client calls a tool of ours: with the server before it, or in a namespace."""
    for tool in tools:
        if tool.get("type") == "namespace" and "string" in tool["name"]:
            return {"namespace": tool["name"], "name": wanted}
        if tool.get("name", "").endswith(f"string__{wanted}"):
            return {"name": tool["name"]}
    listed = json.dumps([tool.get("name", tool.get("type")) for tool in tools])
    raise AssertionError(f"{wanted} is not among the tools: {listed}")


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)
