"""Flows of a strategy, as a program writes them: which agents work, and in which order."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Literal

from stringd.library.agents import Agent, Person
from stringd.library.functions import FunctionTool

MatchMode = Literal["substring", "first-line", "any-line", "exact"]
VERSION: Final = "1.0"


class Flow:
    """What all flows have. Steps are agents or other flows.

    `settings` are keys of the strategy around the flow: its `name` where it differs, `version`,
    `mcpServers`, `sandbox`.
    """

    type: str

    def __init__(
        self, steps: Sequence["Step"], name: str | None, description: str | None = None
    ) -> None:
        if not steps:
            raise ValueError(f"{type(self).__name__} needs at least one step")
        self.steps = tuple(steps)
        self.name = name or type(self).__name__
        self.description = description
        self.settings: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(each.name for each in self.steps)})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Flow) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.type, self.name))

    @property
    def agents(self) -> dict[str, Agent | Person]:
        """Every agent by its name. Raises `ValueError` when two differ and share one."""
        found: dict[str, Agent | Person] = {}
        for each in self.members():
            if found.setdefault(each.name, each) != each:
                raise ValueError(f"two different agents are called {each.name!r}")
        return found

    @property
    def tools(self) -> list[FunctionTool[..., Any]]:
        """The functions its agents may call. Raises `ValueError` when two share a name."""
        found: dict[str, FunctionTool[..., Any]] = {}
        for each in (one for agent in self.agents.values() for one in agent.functions):
            if found.setdefault(each.name, each) is not each:
                raise ValueError(f"two different tools are called {each.name!r}")
        return list(found.values())

    def to_dict(self, name: str | None = None) -> dict[str, Any]:
        """What a strategy file would say."""
        named = {"name": name} if name else {}
        return {
            "name": self.name,
            "version": VERSION,
            **({"description": self.description} if self.description else {}),
            **self.settings,
            **named,
            "agents": {name: agent.to_dict() for name, agent in self.agents.items()},
            "flow": self.tree(),
        }

    def to_yaml(self, name: str | None = None) -> str:
        """The text of a strategy file."""
        import yaml

        return yaml.safe_dump(self.to_dict(name), sort_keys=False, allow_unicode=True)

    def save(self, path: str | Path) -> Path:
        """Write a strategy file, for `stringd run` and everybody else."""
        target = Path(path)
        target.write_text(self.to_yaml(), "utf-8")
        return target

    def tree(self) -> dict[str, Any]:
        """The flow as a strategy file nests it."""
        return {
            "name": self.name,
            "type": self.type,
            "steps": [
                each.tree() if isinstance(each, Flow) else {"agent": each.name}
                for each in self.steps
            ],
        }

    def members(self) -> Iterator[Agent | Person]:
        """Every agent in the order of the steps, as often as it is there."""
        for each in self.steps:
            if isinstance(each, Flow):
                yield from each.members()
            else:
                yield each


Step = Agent | Person | Flow


class Sequential(Flow):
    """One step after the other; each gets what the one before it said."""

    type = "sequential"

    def __init__(
        self, *steps: Step, name: str | None = None, description: str | None = None
    ) -> None:
        super().__init__(steps, name, description)


class Broadcast(Flow):
    """Every step gets the same message; the results are joined by `separator`."""

    type = "broadcast"

    def __init__(
        self,
        *steps: Step,
        separator: str = "\n\n",
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        super().__init__(steps, name, description)
        self.separator = separator

    def tree(self) -> dict[str, Any]:
        more = {} if self.separator == "\n\n" else {"separator": self.separator}
        return super().tree() | more


class Cycle(Flow):
    """The steps in order, `rounds` times, or for ever with `rounds=None`.

    With `until`, an observer reads the result of each round: when it says one of these words the
    cycle ends with that result, otherwise what it said goes into the next round. The observer is
    the last of the steps unless another agent is given.
    """

    type = "cycle"

    def __init__(
        self,
        *steps: Step,
        rounds: int | None = 1,
        until: str | Sequence[str] | None = None,
        observer: Agent | Person | None = None,
        match: MatchMode = "substring",
        name: str | None = None,
        description: str | None = None,
    ) -> None:
        if until is not None and observer is None:
            *steps, last = steps  # type: ignore[assignment]
            if not steps or isinstance(last, Flow):
                raise ValueError("a Cycle with until= needs an agent that reads each round, last")
            observer = last
        super().__init__(steps, name, description)
        self.rounds = rounds
        self.until = (until,) if isinstance(until, str) else None if until is None else tuple(until)
        self.observer = observer
        self.match = match

    def tree(self) -> dict[str, Any]:
        said: dict[str, Any] = {"cycles": "Infinity" if self.rounds is None else self.rounds}
        if self.observer is not None:
            said["observer"] = self.observer.name
        if self.until is not None:
            said["breakCycleSignals"] = list(self.until)
        if self.match != "substring":
            said["breakCycleSignalMatch"] = self.match
        return super().tree() | said

    def members(self) -> Iterator[Agent | Person]:
        yield from super().members()
        if self.observer is not None:
            yield self.observer


def as_flow(step: Step) -> Flow:
    """A flow as it is, and an agent as a flow of one."""
    return step if isinstance(step, Flow) else Sequential(step, name=step.name)
