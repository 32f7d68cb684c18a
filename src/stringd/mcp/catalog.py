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
_FILLED: Final = {"type": "string", "minLength": 1}
_WORDS: Final = {"type": "array", "items": _TEXT}

INSTRUCTIONS: Final = (
    "stringd gives you documents, web pages, apps and shells through one tool, string. "
    "Start with string(topic='file:main', cmd='/help'). "
    "Names of files are found in the String home, then in the directory your client works in; "
    "/ls ./ lists that one, and new shells start there. "
    "What a person must approve goes through execute. "
    "A call that takes long answers with a handle: continue with wait."
)

TOOLS: Final = (
    ListedTool(
        "string",
        "String",
        "Run one command in a topic. A topic is type:name and keeps its state between calls: "
        "file:main (documents), app:NAME (an installed app), web:NAME (web pages), "
        "bash:NAME (a live shell; cmd is what you would type there). Elsewhere cmd starts with /: "
        "/help lists commands, /info shows a topic's state, /open opens, /outline lists headings, "
        "/find searches, /act --help shows an app's actions.",
        {
            "topic": _FILLED,
            "cmd": _FILLED,
            "timeout": {"type": "string", "description": "limit of a shell command: 20m (2m)"},
        },
        ("topic", "cmd"),
    ),
    ListedTool(
        "execute",
        "Execute with approval",
        "Ask the user to let a command run, as root unless privileged is false. They see exactly "
        "what you ask for and decide. No shell: argv is one command, pipeline several joined by "
        "pipes. A refusal or silence is final: do not try another way.",
        {
            "argv": _WORDS,
            "pipeline": {"type": "array", "items": _WORDS},
            "description": {"type": "string", "description": "why; shown to the user"},
            "privileged": {"type": "boolean", "default": True},
            "env": {"type": "object", "additionalProperties": _TEXT},
            "forward_agent": {
                "type": "boolean",
                "description": "let it use the user's SSH agent; needs privileged: false",
            },
            "host": {"type": "string", "description": "run on this machine of the user's list"},
            "timeout": {"type": "integer", "description": "ms, default 120000, at most 600000"},
        },
    ),
    ListedTool(
        "run_strategy",
        "Run a strategy",
        "Start a run of a strategy, by name or path, and follow it until it ends, needs an answer "
        "or takes long. The reply names the run.",
        {"strategy": _FILLED, "input": _TEXT},
        ("strategy",),
    ),
    ListedTool(
        "run_status",
        "Run status",
        "A run's state, what it waits for and its result. Without run_id: all runs.",
        {"run_id": _TEXT},
        read_only=True,
    ),
    ListedTool(
        "answer",
        "Answer a run",
        "Give the input or the answer to a question a run waits for; id says which one when there "
        "are several. Permissions cannot be given here: only the user grants them.",
        {"run_id": _FILLED, "text": _TEXT, "id": _TEXT},
        ("run_id", "text"),
    ),
    ListedTool(
        "steer",
        "Steer a run",
        "Give a running run a text that its agent reads before its next step.",
        {"run_id": _FILLED, "text": _FILLED},
        ("run_id", "text"),
    ),
    ListedTool(
        "wait",
        "Wait",
        "Go on waiting for a call or a run that took long, or read on in a reply that was cut: "
        "handle is what it answered with, or a run id.",
        {"handle": _FILLED},
        ("handle",),
        read_only=True,
    ),
)

NAMES: Final = tuple(tool.name for tool in TOOLS)
