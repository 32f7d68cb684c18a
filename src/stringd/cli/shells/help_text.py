"""What every command says of itself: the text of `--help`, and the words it offers."""

import io
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from importlib import import_module
from typing import Final, NamedTuple, Protocol

WIDTH: Final = 100
_OPTION: Final = re.compile(r"^ {1,6}(-{1,2}[A-Za-z][^\s,=]*(?:[ ,=]+\S+)*?)(?: {2,}(\S.*))?$")
_FLAG: Final = re.compile(r"(?<!\S)--?[A-Za-z][A-Za-z0-9-]*")
_COMMAND: Final = re.compile(r"^ {4}([a-z][a-z-]*)(?: {2,}(\S.*))?$")


class Named(Protocol):
    """Where a subcommand's module is, and what the subcommand does."""

    @property
    def module(self) -> str: ...
    @property
    def summary(self) -> str: ...


class HelpPage(NamedTuple):
    """One command: the text of its help, its options and its own subcommands with a line each."""

    name: str
    summary: str
    text: str
    options: dict[str, str]
    commands: dict[str, str]


def pages(subcommands: Mapping[str, Named]) -> list[HelpPage]:
    """The page of every subcommand of `stringd`, in their order."""
    with _fixed_width():
        return [_page(name, entry) for name, entry in subcommands.items()]


def string_page() -> HelpPage:
    """The page of `string`."""
    from stringd.cli.string import HELP

    options = dict.fromkeys(_FLAG.findall(HELP), "") | _options(HELP)
    return HelpPage("string", "one command, or a session of them", HELP, options, {"user": "users"})


def _page(name: str, entry: Named) -> HelpPage:
    module, out = import_module(f"stringd.cli.{entry.module}"), io.StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(out):
            module.main(name, ["--help"])
    except SystemExit:
        # How argparse ends once it has printed its help.
        pass
    text = out.getvalue()
    return HelpPage(name, entry.summary, text, _options(text), dict(_commands(text)))


def _options(text: str) -> dict[str, str]:
    found: dict[str, str] = {}
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if (match := _OPTION.match(line)) is None:
            continue
        following = lines[number + 1 : number + 2]
        wrapped = following[0].strip() if following and following[0].startswith(" " * 10) else ""
        for flag in _FLAG.findall(match[1]):
            found.setdefault(flag, match[2] or wrapped)
    return found


def _commands(text: str) -> Iterator[tuple[str, str]]:
    """Subcommands as argparse lists them, below the name that stands for one of them."""
    _, _, below = text.partition("positional arguments:\n")
    for line in below.partition("\n\n")[0].splitlines():
        if (match := _COMMAND.match(line)) is not None:
            yield match[1], match[2] or ""


@contextmanager
def _fixed_width() -> Iterator[None]:
    """The same text whatever the terminal is."""
    before = os.environ.get("COLUMNS")
    os.environ["COLUMNS"] = str(WIDTH)
    try:
        yield
    finally:
        if before is None:
            del os.environ["COLUMNS"]
        else:
            os.environ["COLUMNS"] = before
