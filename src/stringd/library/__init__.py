"""Agents and flows as objects of a program. Names load when they are first used.

from stringd import Agent, Cycle, run, tool

writer = Agent("writer", model="openai/gpt-5", prompt="Write one paragraph.")
critic = Agent("critic", model="anthropic/claude-sonnet", prompt="Say ==OK== when it is good.")
print(run(Cycle(writer, critic, until="==OK==", rounds=3), "heat pumps"))
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from stringd.library.agents import Agent, Person
    from stringd.library.flows import Broadcast, Cycle, Sequential
    from stringd.library.functions import FunctionTool, tool
    from stringd.library.reading import read_strategy
    from stringd.library.results import RunResult
    from stringd.library.running import Answer, Prompt, RunOptions, follow, run, run_async

__all__ = [
    "Agent",
    "Answer",
    "Broadcast",
    "Cycle",
    "FunctionTool",
    "Person",
    "Prompt",
    "RunOptions",
    "RunResult",
    "Sequential",
    "follow",
    "read_strategy",
    "run",
    "run_async",
    "tool",
]

_MODULES = {
    "agents": ("Agent", "Person"),
    "flows": ("Broadcast", "Cycle", "Sequential"),
    "functions": ("FunctionTool", "tool"),
    "reading": ("read_strategy",),
    "results": ("RunResult",),
    "running": ("Answer", "Prompt", "RunOptions", "follow", "run", "run_async"),
}
_PLACES = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    from importlib import import_module

    module = _PLACES.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{module}"), name)
