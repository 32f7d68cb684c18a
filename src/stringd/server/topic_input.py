"""`POST /topics/<user>/<topic>/input`: keys for the program that runs in a bash topic.

What `//key` does, without waiting for what the program says to it: a person types faster.
"""

from typing import TYPE_CHECKING, Annotated

import msgspec

from stringd.runtime.shell.errors import NothingRunningError
from stringd.runtime.shell.shell import Shell
from stringd.runtime.shell.terminal import LARGEST, SMALLEST, ScreenSize
from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response
from stringd.server.topic_view import INPUT, find_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime

_Size = Annotated[int, msgspec.Meta(ge=SMALLEST, le=LARGEST)]


class TypedKeys(msgspec.Struct):
    """What was typed, as a terminal sends it, and the size the screen has now."""

    text: str = ""
    columns: _Size | None = None
    rows: _Size | None = None


class TopicInputEndpoint:
    """Types, or resizes, and answers at once."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime

    def __call__(self, request: HttpRequest) -> HttpResponse:
        _, session = find_topic(self._runtime, request.path.removesuffix(INPUT))
        try:
            typed = msgspec.json.decode(request.typed_body() or b"{}", type=TypedKeys)
        except msgspec.DecodeError as error:
            raise HttpError(400, str(error)) from error
        shell = session.running
        try:
            if not isinstance(shell, Shell):
                raise NothingRunningError
            if typed.columns is not None and typed.rows is not None:
                shell.resize(ScreenSize(typed.columns, typed.rows))
            shell.press(typed.text.encode(errors="replace"))
        except NothingRunningError:
            # It may have ended while the keys were on their way: nobody's mistake.
            return json_response(200, {"typed": False})
        return json_response(200, {"typed": True})
