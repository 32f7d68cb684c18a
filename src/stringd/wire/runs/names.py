"""Names of runs and strategies, as people type them."""

import secrets
from typing import Protocol


class NamedStrategy(Protocol):
    """A strategy that was found, here or by a daemon."""

    @property
    def name(self) -> str: ...

    @property
    def label(self) -> str: ...

    @property
    def path(self) -> object: ...


def new_run_id(path: str) -> str:
    """A name a person can type again: the file's, and a few random characters."""
    return f"{_stem(path).replace(' ', '-').lstrip('.')[:40]}-{secrets.token_hex(3)}"


def is_called(strategy: NamedStrategy, name: str) -> bool:
    """Whether a person may mean this strategy: by its name, label or file."""
    return name in (strategy.name, strategy.label, _stem(str(strategy.path)))


def _stem(path: str) -> str:
    """The name of a file without its ending."""
    name = path.rpartition("/")[2]
    return name.rpartition(".")[0] or name
