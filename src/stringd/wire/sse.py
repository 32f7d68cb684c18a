"""Server-sent events, read without I/O: bytes in, events out.

Imports nothing: `string` reads its answers with this and must start fast.
"""


class SseReader:
    """Feed it what arrives; it returns every event that is complete: its name and its data.

    An event without a name is called `message`; one without data is left out.
    """

    __slots__ = ("_rest",)

    def __init__(self) -> None:
        self._rest = bytearray()

    def feed(self, piece: bytes) -> "list[tuple[str, str]]":
        rest = self._rest
        # What was looked through before holds no end of an event, but may hold the start of one.
        start = max(0, len(rest) - 3)
        rest += piece
        if b"\r\n" in piece or rest[start : start + 4].count(b"\r"):
            rest[:] = rest.replace(b"\r\n", b"\n")
            start = 0
        if rest.find(b"\n\n", start) < 0:
            return []
        *blocks, last = bytes(rest).split(b"\n\n")
        rest[:] = last
        return [event for block in blocks if (event := _event(block)) is not None]


def read_events(body: bytes) -> "list[tuple[str, str]]":
    """The complete events of a whole answer."""
    return SseReader().feed(body)


def _event(block: bytes) -> "tuple[str, str] | None":
    name, data = "message", None
    for line in block.decode("utf-8", "replace").split("\n"):
        field, _, value = line.partition(":")
        if value[:1] == " ":
            value = value[1:]
        if field == "event":
            name = value
        elif field == "data":
            data = value if data is None else f"{data}\n{value}"
    return None if data is None else (name, data)
