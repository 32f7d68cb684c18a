"""What the MCP server promises."""

from tests.requirements import Requirement

_SERVER = "MCP server of the String runtime"
_GATE = "MCP server of the gate"
_OURS = "ours"

ALL = [
    Requirement("MCP-01", "The server calls itself string and gives its version.", _SERVER),
    Requirement("MCP-02", "The tool string takes a topic and a cmd, which may name it.", _SERVER),
    Requirement("MCP-03", "Its description names topics, the slash and discovery.", _SERVER),
    Requirement("MCP-04", "With a topic, a result is one text: the reply in a block.", _SERVER),
    Requirement("MCP-05", "A result has no structured content.", _SERVER),
    Requirement("MCP-06", "A failure has isError and always reads ERROR(CODE): message.", _SERVER),
    Requirement("MCP-07", "An invalid topic answers INVALID_TARGET.", _SERVER),
    Requirement("MCP-08", "A busy topic queues the command instead of refusing it.", _SERVER),
    Requirement("MCP-09", "HTTP is stateless; X-User-Id is optional.", _SERVER),
    Requirement("MCP-10", "Unknown users get a home under ~/.string/users.", _SERVER),
    Requirement("MCP-11", "stdio starts the daemon and registers the user.", _SERVER),
    Requirement("MCP-12", "Only JSON-RPC is written to standard output.", _GATE),
    Requirement("MCP-13", "Closing standard input ends the process.", _GATE),
    Requirement("MCP-14", "execute checks gate, form and agent in that order.", _GATE),
    Requirement("MCP-15", "A denial tells the model not to try another way.", _GATE),
    Requirement("MCP-16", "A timeout tells the model that silence is not consent.", _GATE),
    Requirement("MCP-17", "A permission is never granted through MCP.", _OURS),
    Requirement("MCP-18", "A call that takes long answers with a handle for wait.", _OURS),
    Requirement("MCP-19", "Who asked for progress hears of it while a run works.", _OURS),
    Requirement("MCP-20", "Open documents and known runs are resources.", _OURS),
    Requirement("MCP-21", "Web pages of other origins are refused.", _OURS),
    Requirement("MCP-22", "Truncation, signals and earlier failures are always said.", _GATE),
    Requirement("MCP-23", "Every tool has a real description.", _GATE),
    Requirement("MCP-24", "The working directory comes from the client program.", _OURS),
]
