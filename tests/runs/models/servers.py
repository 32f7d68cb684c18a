"""HTTP servers that speak as model providers do, one scripted answer per request."""

import asyncio
import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

Json = dict[str, Any]


@dataclass
class Reply:
    """What to send. `cut` drops the connection at the end; `hold` waits before piece `hold_at`.

    Before piece -1 not even the status line is sent.
    """

    chunks: Sequence[bytes] = ()
    status: str = "200 OK"
    headers: Json = field(default_factory=dict)
    cut: bool = False
    hold: asyncio.Event | None = None
    hold_at: int = 1
    content_type: str = "text/event-stream"


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Json


class ModelServer:
    """Answers requests in the order of `replies`; past the end the last one repeats."""

    def __init__(self) -> None:
        self.replies: list[Reply] = []
        self.asked: list[Asked] = []
        self.left = asyncio.Event()
        self.sent_first = asyncio.Event()
        self.held = asyncio.Event()
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while await self._answer(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError):
            self.left.set()
        except asyncio.CancelledError:
            pass
        finally:
            writer.close()

    async def _answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *fields = head.strip().split("\r\n")
        headers = {k.lower(): v for k, _, v in (each.partition(": ") for each in fields)}
        raw = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append(Asked(line.split()[1], headers, json.loads(raw or b"{}")))
        reply = self.replies[min(len(self.asked), len(self.replies)) - 1]
        watch = asyncio.create_task(reader.read(1)) if reply.hold else None
        if reply.hold_at == -1 and await self._left(reply, watch):
            return False
        extra = "".join(f"{key}: {value}\r\n" for key, value in reply.headers.items())
        writer.write(
            f"HTTP/1.1 {reply.status}\r\nContent-Type: {reply.content_type}\r\n{extra}"
            "Transfer-Encoding: chunked\r\n\r\n".encode()
        )
        for number, chunk in enumerate((*reply.chunks, b"")):
            if number == reply.hold_at and await self._left(reply, watch):
                return False
            if chunk:
                writer.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                await writer.drain()
                self.sent_first.set()
        if watch is not None:
            watch.cancel()
            await asyncio.wait((watch,))
        if reply.cut:
            writer.transport.abort()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True

    async def _left(self, reply: Reply, watch: "asyncio.Task[bytes] | None") -> bool:
        """Wait to be let on; whether the client went away meanwhile."""
        if reply.hold is None or watch is None:
            return False
        self.held.set()
        waiting = asyncio.create_task(reply.hold.wait())
        await asyncio.wait((watch, waiting), return_when=asyncio.FIRST_COMPLETED)
        waiting.cancel()
        if watch.done():
            self.left.set()
        return watch.done()


@asynccontextmanager
async def model_server(*replies: Reply) -> AsyncIterator[ModelServer]:
    server = ModelServer()
    server.replies = list(replies)
    listener = await asyncio.start_server(server.serve, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


def failure(status: str, message: str, **headers: Any) -> Reply:
    body = json.dumps({"error": {"message": message, "type": "server_error"}}).encode()
    return Reply([body], status, headers, content_type="application/json")


def event(data: Any, name: str | None = None) -> bytes:
    lead = f"event: {name}\n" if name else ""
    return f"{lead}data: {data if isinstance(data, str) else json.dumps(data)}\n\n".encode()


def openai(*deltas: Json, finish: str | None = "stop", **more: Any) -> Reply:
    """A chat completion stream of these deltas."""
    base = {"id": "c1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [
        event({**base, "choices": [{"index": 0, "delta": delta, "finish_reason": None}]})
        for delta in deltas
    ]
    if finish:
        chunks.append(
            event({**base, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
        )
        usage = {
            "prompt_tokens": 11,
            "completion_tokens": 7,
            "total_tokens": 18,
            "prompt_tokens_details": {"cached_tokens": 4},
            "completion_tokens_details": {"reasoning_tokens": 2},
        }
        chunks += [event({**base, "choices": [], "usage": usage}), event("[DONE]")]
    return Reply(chunks, **more)


def openai_text(*texts: str, **more: Any) -> Reply:
    return openai({"role": "assistant", "content": ""}, *({"content": t} for t in texts), **more)


def openai_tool(name: str, args: str, call_id: str = "call_1") -> Reply:
    half = len(args) // 2
    begin = {"index": 0, "id": call_id, "type": "function"}
    return openai(
        {
            "role": "assistant",
            "tool_calls": [{**begin, "function": {"name": name, "arguments": ""}}],
        },
        {"tool_calls": [{"index": 0, "function": {"arguments": args[:half]}}]},
        {"tool_calls": [{"index": 0, "function": {"arguments": args[half:]}}]},
        finish="tool_calls",
    )


def anthropic(*blocks: Json, stop: str | None = "end_turn", **more: Any) -> Reply:
    """A message stream; each block is `{start, deltas}`."""
    usage = {"input_tokens": 9, "output_tokens": 1}
    message: Json = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    chunks = [event({"type": "message_start", "message": message}, "message_start")]
    for index, block in enumerate(blocks):
        start = {"type": "content_block_start", "index": index, "content_block": block["start"]}
        chunks.append(event(start, "content_block_start"))
        for delta in block["deltas"]:
            data = {"type": "content_block_delta", "index": index, "delta": delta}
            chunks.append(event(data, "content_block_delta"))
        chunks.append(event({"type": "content_block_stop", "index": index}, "content_block_stop"))
    if stop:
        ended = {"stop_reason": stop, "stop_sequence": None}
        delta = {"type": "message_delta", "delta": ended, "usage": {"output_tokens": 5}}
        chunks.append(event(delta, "message_delta"))
        chunks.append(event({"type": "message_stop"}, "message_stop"))
    return Reply(chunks, **more)


def anthropic_text(*texts: str) -> Json:
    deltas = [{"type": "text_delta", "text": text} for text in texts]
    return {"start": {"type": "text", "text": ""}, "deltas": deltas}


def anthropic_thinking(text: str, signature: str) -> Json:
    return {
        "start": {"type": "thinking", "thinking": "", "signature": ""},
        "deltas": [
            {"type": "thinking_delta", "thinking": text},
            {"type": "signature_delta", "signature": signature},
        ],
    }


def anthropic_tool(name: str, args: str, call_id: str = "toolu_1") -> Json:
    half = len(args) // 2
    return {
        "start": {"type": "tool_use", "id": call_id, "name": name, "input": {}},
        "deltas": [
            {"type": "input_json_delta", "partial_json": args[:half]},
            {"type": "input_json_delta", "partial_json": args[half:]},
        ],
    }


def side_by_side(
    family: str, one: tuple[str, str, str], two: tuple[str, str, str]
) -> tuple[Reply, Reply]:
    """Two calls whose arguments arrive in turns, then one without an id where a server may omit it.

    Each is its name and two halves of its arguments.
    """
    if family == "anthropic":
        blocks = [anthropic_tool(n, a + b, f"t{i}") for i, (n, a, b) in enumerate((one, two))]
        again = anthropic_tool(one[0], one[1] + one[2], "t9")
        return anthropic(*blocks, stop="tool_use"), anthropic(again, stop="tool_use")
    begun = [
        {
            "index": index,
            "id": f"c{index}",
            "type": "function",
            "function": {"name": name, "arguments": half},
        }
        for index, (name, half, _) in enumerate((one, two))
    ]
    ended = [
        {"index": index, "function": {"arguments": half}}
        for index, (_, _, half) in enumerate((one, two))
    ]
    function = {"name": one[0], "arguments": one[1] + one[2]}
    nameless = {"index": 0, "type": "function", "function": function}
    return (
        openai({"role": "assistant", "tool_calls": begun}, {"tool_calls": ended}, finish="stop"),
        openai({"role": "assistant", "tool_calls": [nameless]}, finish="tool_calls"),
    )
