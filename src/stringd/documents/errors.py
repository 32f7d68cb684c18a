"""What an edit can be refused for. Each error knows its code and words itself for a path.

DocumentError
├── BlockNotFoundError        NOT_FOUND
├── BlockBrokenError          INVALID_PAYLOAD   the new text would damage the document
├── LineRangeError         INVALID_TARGET
├── LineRangeOutOfBoundsError INVALID_TARGET
├── ReplacementError       INVALID_PAYLOAD
├── TextNotFoundError         NOT_FOUND
└── AmbiguousTextError        CONFLICT
"""


class DocumentError(Exception):
    """Base of everything this room raises. Parsing and rendering never raise."""

    code = "INVALID_PAYLOAD"

    def message(self, path: str) -> str:
        """The words a reader sees; `path` is the target as they typed it."""
        return f"{self} in {path}."


class BlockNotFoundError(DocumentError):
    """No marker, heading id or heading slug has this id."""

    code = "NOT_FOUND"

    def __init__(self, block: str, available: str) -> None:
        super().__init__(f"Block #{block} not found")
        self.block = block
        self.available = available
        """Which blocks there are, in a sentence."""

    def message(self, path: str) -> str:
        return (
            f"Block #{self.block} not found in {path}.\n"
            "Supported formats (in priority order):\n"
            f"  1. <!-- #{self.block} --> … <!-- /{self.block} --> (markers)\n"
            f"  2. ## Heading {{#{self.block}}} (explicit heading id)\n"
            f"  3. ## Heading whose slug is {self.block}\n"
            f"{self.available}"
        )


class BlockBrokenError(DocumentError):
    """With the new text the block could not be found again, or would swallow its neighbours."""

    def __init__(self, block: str) -> None:
        super().__init__(f"The new text would break block #{block}")
        self.block = block

    def message(self, path: str) -> str:
        return (
            f"The new text would break block #{self.block} in {path}; nothing was written.\n"
            "Recovery: leave the block's own markers out of the text and close every code fence."
        )


class LineRangeError(DocumentError):
    """Reversed, or before line 1."""

    code = "INVALID_TARGET"

    def __init__(self, first: int, last: int) -> None:
        super().__init__(f"Invalid line range: L{first}-L{last}")

    def message(self, path: str) -> str:  # noqa: ARG002  the range is the whole story
        return str(self)


class LineRangeOutOfBoundsError(DocumentError):
    """Past the end of the text."""

    code = "INVALID_TARGET"

    def __init__(self, first: int, last: int, lines: int) -> None:
        super().__init__(f"Line range out of bounds: L{first}-L{last} (file has {lines} lines)")
        self.range = f"L{first}" if first == last else f"L{first}-L{last}"
        self.lines = lines

    def message(self, path: str) -> str:
        return (
            f"Line range out of bounds: {path}:{self.range} (file has {self.lines} lines)\n"
            f"Recovery: run /edit {path} for current line numbers."
        )


class ReplacementError(DocumentError):
    """The body is not `old`, a line `---`, `new`; or old is empty."""

    def message(self, path: str) -> str:  # noqa: ARG002
        return str(self)


class TextNotFoundError(DocumentError):
    """The old text does not occur."""

    code = "NOT_FOUND"

    def __init__(self) -> None:
        super().__init__("Old text not found")


class AmbiguousTextError(DocumentError):
    """The old text occurs more than once and not all were asked for."""

    code = "CONFLICT"

    def __init__(self, count: int, excerpts: tuple[str, ...]) -> None:
        super().__init__(f"Old text matched {count} times")
        self.count = count
        self.excerpts = excerpts

    def message(self, path: str) -> str:
        head = (
            f"Old text matched {self.count} times in {path}; refusing ambiguous replace.\n"
            "Give more surrounding text so that it matches once, or use --all.\n"
            "Matches:\n"
        )
        return head + "\n".join(f"- ...{excerpt}..." for excerpt in self.excerpts)
