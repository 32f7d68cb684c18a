"""The shape of a strategy file. Every object is strict: an unknown key is a mistake to name."""

from typing import Final

from stringd.formats.shapes import (
    Anything,
    Either,
    Entries,
    Fields,
    Flag,
    Items,
    Lazy,
    Literal,
    Matching,
    Number,
    OneOf,
    Shape,
    TextShape,
)
from stringd.runs.strategy.acp_commands import ACP_COMMANDS

BUILT_IN_FLOWS: Final = ("sequential", "cycle", "broadcast")
MATCH_MODES: Final = ("substring", "first-line", "any-line", "exact")

_text = TextShape()
_filled = TextShape(filled=True)
_map = Entries(Anything())
_count = Number(whole=True, at_least=0)

_setting = Either((_text, Fields({"env": _text})))
_web_server = Fields(
    {"transport": OneOf(("http", "sse")), "url": _setting},
    {"headers": Entries(_setting), "enabledByDefault": Flag()},
)
_stdio_server = Fields(
    {"transport": Literal("stdio"), "command": _setting},
    {
        "args": Items(_setting),
        "cwd": _setting,
        "env": Entries(_setting),
        "enabledByDefault": Flag(),
        "sandbox": OneOf(("read-only", "workspace", "open")),
        "network": Either((OneOf(("none", "open")), Items(_filled))),
    },
)


def _meant_server(value: object) -> int:
    return int(isinstance(value, dict) and value.get("transport") == "stdio")


MCP_SERVERS: Final = Entries(Either((_web_server, _stdio_server), _meant_server))

_user_agent = Fields(
    {"type": Literal("user")},
    {
        "description": _text,
        "config": Fields({}, {"requireInput": Flag(), "presetMessage": _text}),
    },
)

_variable = Either((_text, Number(), Flag(), Items(_text), Entries(_text)))
_context = Fields(
    {},
    {
        "rollingWindow": Either((_count, Fields({"maxRecords": _count}))),
        "compaction": Either(
            (
                Flag(),
                Fields({}, {"keepRecent": _count, "threshold": Number(whole=True, at_least=1)}),
            )
        ),
    },
)
_model_options = Fields(
    {},
    {
        name: Number()
        for name in (
            "temperature",
            "topP",
            "topK",
            "maxOutputTokens",
            "maxRetries",
            "frequencyPenalty",
            "presencePenalty",
            "seed",
        )
    },
)
_llm_agent = Fields(
    {},
    {
        "type": Literal("llm"),
        "description": _text,
        "model": _text,
        "systemPrompt": _text,
        "systemPromptTemplate": Fields({"template": _text}, {"variables": Entries(_variable)}),
        "tools": Items(_text),
        "mcpServers": Items(_filled),
        "skills": Items(_filled),
        "providerOptions": Entries(_map),
        "modelOptions": _model_options,
        "outputSchema": _map,
        "context": _context,
        "maxSteps": Number(whole=True, above=0),
    },
)
_acp_agent = Fields(
    {"type": Literal("acp")},
    {
        "description": _text,
        "agent": OneOf(tuple(ACP_COMMANDS)),
        "command": Items(_filled, filled=True),
        "env": Entries(_text),
        "systemPrompt": _text,
    },
)
_custom_type = Matching(
    lambda name: bool(name) and name not in ("user", "llm", "acp"),
    "Invalid custom agent type",
    fatal=True,
)
_custom_agent = Fields({"type": _custom_type}, {"description": _text, "config": _map})


def _meant_agent(value: object) -> int:
    if not isinstance(value, dict):
        return 1
    return {"user": 0, "llm": 1, None: 1, "acp": 3}.get(value.get("type"), 2)


AGENT: Final = Either((_user_agent, _llm_agent, _custom_agent, _acp_agent), _meant_agent)

_agent_step = Fields({"agent": _text}, {"description": _text})
_approve_step = Fields({"approve": _filled}, {"name": _filled, "description": _text})


def _flow(type_: Shape, **extra: Shape) -> Fields:
    return Fields(
        {"name": _filled, "type": type_, "steps": Items(Lazy(lambda: STEP), filled=True)},
        {"description": _text, **extra},
    )


_FLOWS: Final = (
    _flow(Literal("sequential")),
    _flow(
        Literal("cycle"),
        cycles=Either((Number(whole=True, above=0), Literal("Infinity"))),
        observer=_text,
        breakCycleSignals=Items(_filled, filled=True),
        breakCycleSignalMatch=OneOf(MATCH_MODES),
        approve=_filled,
    ),
    _flow(Literal("broadcast"), separator=_text, parallel=Flag()),
    _flow(
        Matching(
            lambda name: bool(name) and name not in BUILT_IN_FLOWS, "Invalid flow type", fatal=True
        ),
        config=_map,
    ),
)


def _meant_flow(value: object) -> int:
    if not isinstance(value, dict):
        return 0
    type_ = value.get("type")
    return BUILT_IN_FLOWS.index(type_) if type_ in BUILT_IN_FLOWS else len(BUILT_IN_FLOWS)


def _meant_step(value: object) -> int:
    if not isinstance(value, dict) or "agent" in value:
        return 0
    if "approve" in value and "type" not in value:
        return 1
    return 2 + _meant_flow(value)


FLOW: Final[Shape] = Either(_FLOWS, _meant_flow)
STEP: Final[Shape] = Either((_agent_step, _approve_step, *_FLOWS), _meant_step)

STRATEGY: Final = Fields(
    {"name": _filled, "version": _filled, "agents": Entries(AGENT), "flow": FLOW},
    {
        "description": _text,
        "mcpServers": MCP_SERVERS,
        "sandbox": OneOf(("read-only", "workspace")),
    },
)
