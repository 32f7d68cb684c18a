"""The tools as clients list them. Every word here is part of every conversation: keep it short."""

from typing import Any, Final, NamedTuple


class ListedTool(NamedTuple):
    """A tool's name, title, description and the properties it takes, required ones first."""

    name: str
    title: str
    description: str
    properties: dict[str, Any]
    required: tuple[str, ...] = ()
    read_only: bool = False

    @property
    def schema(self) -> dict[str, Any]:
        required = {"required": list(self.required)} if self.required else {}
        return {"type": "object", "properties": self.properties, **required}


_TEXT: Final = {"type": "string"}
_WORDS: Final = {"type": "array", "items": _TEXT}

INSTRUCTIONS: Final = (
    "stringd gives you documents, web pages, apps and shells through one tool, string. "
    "Start with string(cmd='/help'). "
    "Names of files are found in the String home, then in the directory your client works in; "
    "/ls ./ lists that one, and new shells start there. "
    "What a person must approve goes through execute. "
    "A call that takes long answers with a handle: continue with wait."
)

TOOLS: Final = (
    ListedTool(
        "string",
        "String",
        "Run commands: app:NAME shows an app's actions, APP.ACTION calls one, bash:NAME LINE "
        "runs a shell line; /find WORDS --apps finds apps, /open PATH or URL reads; see /help, "
        "/info, /act --help",
        {"cmd": {"type": ["string", "array"], "items": _TEXT, "minLength": 1}, "topic": _TEXT},
        ("cmd",),
    ),
    ListedTool(
        "execute",
        "Execute with approval",
        "Ask the user to run a command, as root unless privileged is false. A no is final.",
        {"argv": _WORDS, "description": _TEXT, "privileged": {"type": "boolean"}},
    ),
    ListedTool(
        "run_strategy",
        "Run a strategy",
        "Start a strategy by name or path.",
        {"strategy": _TEXT, "input": _TEXT},
    ),
    ListedTool(
        "run_status",
        "Run status",
        "A run's state and result, or all runs.",
        {"run_id": _TEXT},
        read_only=True,
    ),
    ListedTool(
        "answer",
        "Answer a run",
        "Answer a run's question.",
        {"run_id": _TEXT, "text": _TEXT},
    ),
    ListedTool(
        "steer",
        "Steer a run",
        "Tell a running agent.",
        {"run_id": _TEXT, "text": _TEXT},
    ),
    ListedTool(
        "wait",
        "Wait",
        "Wait for a call or run; read on.",
        {"handle": _TEXT},
        read_only=True,
    ),
)

NAMES: Final = tuple(tool.name for tool in TOOLS)
