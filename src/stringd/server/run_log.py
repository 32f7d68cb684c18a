"""`GET /runs/<id>/events.jsonl`: everything a run has said, a JSON object a line."""

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import unquote

from stringd.server.http.messages import (
    CORS_HEADERS,
    ClientGone,
    HttpError,
    HttpRequest,
    HttpResponse,
)

if TYPE_CHECKING:
    from stringd.server.runs import RunsEndpoint

PATH: Final = "/runs/"
END: Final = "/events.jsonl"

_HEAD: Final = b"Content-Type: application/x-ndjson\r\nCache-Control: no-store\r\n" + CORS_HEADERS


class RunLog:
    """Streams the broadcasts of a run, live or long ended, at the reader's pace."""

    def __init__(self, runs: "RunsEndpoint") -> None:
        self._runs = runs

    async def __call__(self, request: HttpRequest) -> HttpResponse:
        run_id = unquote(request.path.removeprefix(PATH).removesuffix(END))
        service = await self._runs.service()
        pieces = await asyncio.to_thread(service.pieces, run_id)
        if pieces is None:
            raise HttpError(404, f"Run not found: {run_id}")
        left = request.peer.left()
        request.peer.stream(_HEAD)
        while piece := await asyncio.to_thread(next, pieces, b""):
            if left.done():
                raise ClientGone
            writing = request.peer.write(piece)
            # What waits in the connection is counted there; a copy here would not be.
            del piece
            await writing
        return HttpResponse(200, b"", b"")
