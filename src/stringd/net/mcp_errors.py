"""Why an MCP server could not be used: one family, which the rooms put in their own words."""


class McpError(Exception):
    """A server could not be used; `str()` says why and may hold words of its definition."""


class McpMissingError(McpError):
    """The SDK is not installed."""


class McpRefusedError(McpError):
    """The address is not one that may be asked now: nothing was sent."""


class McpTimeoutError(McpError):
    """No answer came in time."""


class McpFloodError(McpError):
    """The server sent more than it may and was ended; `str()` continues "it …"."""


class McpAnswerError(McpError):
    """The server answered that it failed; `str()` is what it said."""


class McpStartError(McpError):
    """The server could not be started or reached.

    `cause` is what went wrong first, `printed` what the server had to say.
    """

    def __init__(self, cause: BaseException, printed: str) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.cause = cause
        self.printed = printed


class McpCallError(McpError):
    """A call failed. A server that is `lost` is started again with the next call."""

    def __init__(self, cause: BaseException, *, lost: bool) -> None:
        super().__init__(str(cause) or type(cause).__name__)
        self.lost = lost
