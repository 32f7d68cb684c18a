"""Five ways to give a model the same tools, and what a conversation costs each way. Pure."""

import json
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from stringd.runtime.packages.ranking import ActionSummary, AppSummary, ranked

Count = Callable[[str], int]
CACHE_READ: Final = 0.1
FOUND: Final = 3
"""Definitions that a search for deferred tools answers with."""


class Turn(NamedTuple):
    """One tool call and its result, as a model writes the one and reads the other."""

    call: str
    result: str


class RealTool(NamedTuple):
    """A tool as its server lists it."""

    server: str
    name: str
    description: str
    schema: Mapping[str, Any]


class Step(NamedTuple):
    """One call of a tool, and the text it was answered with."""

    server: str
    tool: str
    arguments: Mapping[str, Any]
    answer: str = ""


class RealTask(NamedTuple):
    words: str
    """What a caller that does not know the tools searches for."""
    steps: tuple[Step, ...]


class Arm(NamedTuple):
    """One way: what is in every conversation, and the turns of each task in it."""

    name: str
    standing: str
    discover: Callable[[RealTask], list[Turn]]
    """What a caller asks that has never seen the tools of a task."""
    perform: Callable[[RealTask], list[Turn]]
    key: Callable[[RealTask], frozenset[str]]
    """What is known after `discover`; a task whose keys are known needs none."""


class Cost(NamedTuple):
    context: int
    """Tokens in the window at the end."""
    read: int
    """Input over all turns, nothing cached."""
    read_cached: float
    """The same with what was read before at a tenth."""


def compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def definition(tool: RealTool) -> str:
    """A tool as a client puts it into the context."""
    name = f"{tool.server}_{tool.name}"
    return compact(
        {"name": name, "description": tool.description, "inputSchema": dict(tool.schema)}
    )


def used(task: RealTask) -> frozenset[str]:
    return frozenset(f"{step.server}.{step.tool}" for step in task.steps)


def servers_of(task: RealTask) -> frozenset[str]:
    return frozenset(step.server for step in task.steps)


def eager(tools: Sequence[RealTool]) -> Arm:
    """Every tool in every conversation."""
    standing = "".join(map(definition, tools))
    return Arm("every tool", standing, lambda _: [], _typed_turns, lambda _: frozenset())


def deferred(tools: Sequence[RealTool]) -> Arm:
    """One tool that searches, and the definitions it finds."""
    search = {
        "name": "tool_search",
        "description": "Find tools by words; the tools found can be called from then on.",
        "inputSchema": _object({"query": {"type": "string"}}),
    }
    known = {f"{tool.server}.{tool.name}": tool for tool in tools}

    def discover(task: RealTask) -> list[Turn]:
        found = _search(tools, task)
        call = compact({"name": "tool_search", "arguments": {"query": task.words}})
        return [Turn(call, "".join(definition(known[each]) for each in found))]

    return Arm("search, then tools", compact(search), discover, _typed_turns, used)


def skill(tools: Sequence[RealTool]) -> Arm:
    """A shell, a command for each server, and a file that says how it is used."""
    shell = {
        "name": "bash",
        "description": "Run a shell command.",
        "inputSchema": _object({"command": {"type": "string"}}),
    }
    servers = _by_server(tools)
    listed = "".join(
        f"\n- {name}: {len(held)} commands, see skills/{name}.md" for name, held in servers.items()
    )

    def discover(task: RealTask) -> list[Turn]:
        return [
            Turn(_bash(f"cat skills/{name}.md"), skill_file(name, servers[name]))
            for name in sorted(servers_of(task))
        ]

    def perform(task: RealTask) -> list[Turn]:
        return [
            Turn(_bash(" ".join([step.server, step.tool, *_flags(step)])), step.answer)
            for step in task.steps
        ]

    return Arm("shell and skill file", compact(shell) + listed, discover, perform, servers_of)


def code(tools: Sequence[RealTool]) -> Arm:
    """One tool that runs code against a typed interface; only the last answer is printed."""
    run = {
        "name": "run_code",
        "description": "Run Python. help(NAME) prints a module's functions.",
        "inputSchema": _object({"code": {"type": "string"}}),
    }
    servers = _by_server(tools)
    listed = f"\nmodules: {', '.join(servers)}"

    def discover(task: RealTask) -> list[Turn]:
        return [
            Turn(_code(f"help({name})"), typed_interface(servers[name]))
            for name in sorted(servers_of(task))
        ]

    def perform(task: RealTask) -> list[Turn]:
        lines = [_function_call(step) for step in task.steps]
        lines[-1] = f"print({lines[-1]})"
        return [Turn(_code("\n".join(lines)), task.steps[-1].answer)]

    return Arm("code", compact(run) + listed, discover, perform, servers_of)


def string(standing: str, discoveries: Mapping[str, Sequence[Turn]]) -> Arm:
    """The tool `string`; by a task's words what it asked and read before the first call."""

    def perform(task: RealTask) -> list[Turn]:
        return [Turn(string_call(string_command(step)), step.answer) for step in task.steps]

    return Arm("`string`", standing, lambda task: list(discoveries[task.words]), perform, used)


def string_call(command: str) -> str:
    return compact({"name": "string", "arguments": {"cmd": command}})


def string_command(step: Step) -> str:
    return " ".join([f"{step.server}.{step.tool}", *_flags(step)])


def skill_file(server: str, tools: Iterable[RealTool]) -> str:
    """A usage line for each command with all its flags, and its description's first sentence."""
    lines = [f"# {server}"]
    for tool in tools:
        flags = [
            f"--{name}" if needed else f"[--{name}]" for name, _, needed in _parameters(tool.schema)
        ]
        lines.append(" ".join([server, tool.name, *flags]) + f"  {_sentence(tool.description)}")
    return "\n".join(lines)


def typed_interface(tools: Iterable[RealTool]) -> str:
    """A typed function for each tool, with its description's first sentence."""
    lines = []
    for tool in tools:
        typed = (
            f"{name}: {kind}{'' if needed else ' = None'}"
            for name, kind, needed in _parameters(tool.schema)
        )
        about = _sentence(tool.description)
        lines.append(f"def {_identifier(tool.name)}({', '.join(typed)}) -> str  # {about}")
    return "\n".join(lines)


def conversation(arm: Arm, tasks: Iterable[RealTask], *, known: bool = False) -> list[Turn]:
    """The turns of some tasks one after the other; what was found once is not asked again."""
    turns: list[Turn] = []
    seen: set[str] = set()
    for task in tasks:
        if not known and not arm.key(task) <= seen:
            turns += arm.discover(task)
            seen |= arm.key(task)
        turns += arm.perform(task)
    return turns


def cost(count: Count, standing: str, turns: Iterable[Turn]) -> Cost:
    """What a conversation costs. The answer after the last result reads all of it once more."""
    context = count(standing)
    read, cached, seen = 0, 0.0, 0
    for turn in turns:
        read += context
        cached += CACHE_READ * seen + (context - seen)
        seen = context
        context += count(turn.call) + count(turn.result)
    return Cost(context, read + context, cached + CACHE_READ * seen + (context - seen))


def _typed_turns(task: RealTask) -> list[Turn]:
    return [
        Turn(
            compact({"name": f"{step.server}_{step.tool}", "arguments": dict(step.arguments)}),
            step.answer,
        )
        for step in task.steps
    ]


def _search(tools: Sequence[RealTool], task: RealTask) -> list[str]:
    """What a search finds: the best by words, and always the tools that the task needs."""
    apps = [
        AppSummary(f"tool:{each.server}.{each.name}", each.description, (ActionSummary(each.name),))
        for each in tools
    ]
    names = [each.app.name for each in ranked(apps, task.words)]
    needed = sorted(used(task))
    others = [name for name in names if name not in needed]
    return [*needed, *others[: max(0, FOUND - len(needed))]]


def _by_server(tools: Iterable[RealTool]) -> dict[str, list[RealTool]]:
    found: dict[str, list[RealTool]] = {}
    for tool in tools:
        found.setdefault(tool.server, []).append(tool)
    return found


def _parameters(schema: Mapping[str, Any]) -> list[tuple[str, str, bool]]:
    """Name, type in Python's words, and whether it is needed; needed ones first."""
    kinds = {"string": "str", "integer": "int", "number": "float", "boolean": "bool"}
    kinds |= {"array": "list", "object": "dict"}
    needed = schema.get("required") or []
    found = [
        (name, kinds.get(str(each.get("type")), "object"), name in needed)
        for name, each in (schema.get("properties") or {}).items()
        if isinstance(each, dict)
    ]
    return sorted(found, key=lambda each: not each[2])


def _flags(step: Step) -> list[str]:
    words: list[str] = []
    for name, value in step.arguments.items():
        text = value if isinstance(value, str) else compact(value)
        words += [f"--{name}", shlex.quote(text)]
    return words


def _function_call(step: Step) -> str:
    arguments = ", ".join(f"{name}={value!r}" for name, value in step.arguments.items())
    return f"{step.server}.{_identifier(step.tool)}({arguments})"


def _identifier(name: str) -> str:
    return name.replace("-", "_")


def _sentence(text: str) -> str:
    return " ".join(text.split()).partition(". ")[0]


def _bash(command: str) -> str:
    return compact({"name": "bash", "arguments": {"command": command}})


def _code(text: str) -> str:
    return compact({"name": "run_code", "arguments": {"code": text}})


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
