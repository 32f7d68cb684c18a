"""`POST /chanflow`: a text with ChanFlow blocks in, the reply blocks out, in order.

Blocks of different topics run side by side, blocks of one topic one after the other.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from stringd.runtime.topics.call import Caller
from stringd.server.exec import require_user, working_directory
from stringd.server.http.messages import CORS_HEADERS, HttpError, HttpRequest, HttpResponse
from stringd.server.pages import speaker_of
from stringd.server.turns import TopicTurns
from stringd.system.vouched import vouched
from stringd.wire import chanflow
from stringd.wire.body import BodyError, parse_object
from stringd.wire.result import Result, sendable, transport_text
from stringd.wire.topic import InvalidTopicError, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime

_HEAD: Final = b"Content-Type: text/plain; charset=utf-8\r\n" + CORS_HEADERS
SIDE_BY_SIDE: Final = 100
"""Topics of one text that run at once; a text may name more of them."""
MAX_BLOCKS: Final = 10_000
"""Nobody means more; answering them would hold up everybody else."""


LARGE_TEXT: Final = 16 * 1024
"""Characters; a longer text is read outside the loop thread."""


class ChanFlowEndpoint:
    """Runs every string block of a text and answers with their reply blocks."""

    def __init__(self, runtime: "Runtime", turns: TopicTurns) -> None:
        self._runtime = runtime
        self._turns = turns

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        user_id = require_user(self._runtime, request)
        text, cwd, said = _text_and_surroundings(request)
        if len(text) > LARGE_TEXT:
            blocks = await asyncio.to_thread(chanflow.parse, text)
        else:
            blocks = chanflow.parse(text)
        if len(blocks) > MAX_BLOCKS:
            raise HttpError(400, f"More than {MAX_BLOCKS} blocks in one text")
        client = request.headers.get(b"user-agent", b"")
        speaker = speaker_of(request.peer.visitor, request.headers)
        caller = Caller(cwd, speaker=speaker, client=client, environment=said)
        replies = await self._run_all(user_id, blocks, caller)
        return HttpResponse(200, _HEAD, sendable(chanflow.join(replies)).encode())

    async def _run_all(
        self,
        user_id: str,
        blocks: Sequence[chanflow.Block | chanflow.BrokenBlock],
        caller: Caller,
    ) -> list[str]:
        replies = [""] * len(blocks)
        lanes: dict[str, list[int]] = {}
        for index, block in enumerate(blocks):
            if isinstance(block, chanflow.BrokenBlock):
                broken = Result.error("INVALID_PAYLOAD", block.reason)
                replies[index] = _reply(_shown_topic(block.topic), broken)
                continue
            try:
                lanes.setdefault(parse_topic(block.topic).canonical, []).append(index)
            except InvalidTopicError as error:
                invalid = Result.error("INVALID_TARGET", str(error))
                replies[index] = _reply(_shown_topic(block.topic), invalid)

        free = asyncio.Semaphore(SIDE_BY_SIDE)

        async def run_lane(topic: str, indexes: list[int]) -> None:
            async with free:
                for index in indexes:
                    block = blocks[index]
                    assert isinstance(block, chanflow.Block)
                    result = await self._turns.run(
                        user_id, parse_topic(topic), block.payload, caller
                    )
                    replies[index] = _reply(topic, result)

        await asyncio.gather(*(run_lane(topic, indexes) for topic, indexes in lanes.items()))
        return replies


def _text_and_surroundings(request: HttpRequest) -> tuple[str, str | None, dict[str, str]]:
    """The text, and the directory and variables the client vouches for; both forms of body."""
    body = request.typed_body("text/plain")
    query = parse_qs(request.query.decode("utf-8", "replace"))
    declared = (request.header(b"content-type") or "").lower()
    try:
        if not declared.startswith("text/plain"):
            fields = parse_object(body)
            if fields is not None:
                text = fields.raw_text("text")
                if text is None:
                    raise BodyError('text required — expected { "text": "..." }')
                cwd = working_directory(fields.raw_text("cwd"))
                return text, cwd, vouched(fields.variables("env"))
            if declared:
                raise BodyError('Invalid JSON body — expected { "text": "..." }')
        text = body.decode("utf-8")
        return text, working_directory(query.get("cwd", [""])[0]), {}
    except UnicodeDecodeError as error:
        raise HttpError(400, "The text is not UTF-8") from error
    except BodyError as error:
        raise HttpError(400, str(error)) from error


def _reply(topic: str, result: Result) -> str:
    now = datetime.now().astimezone().isoformat(timespec="minutes")
    return chanflow.encode(topic, transport_text(result), time=now, mode=result.mode)


def _shown_topic(raw: str) -> str:
    """The topic a refusal is sent to: canonical if it can be, else as it was written."""
    try:
        return parse_topic(raw).canonical
    except InvalidTopicError:
        return raw.strip()
