"""`GET /topics/<user>/<topic>`: one topic as a person looks at it. Looking changes nothing."""

from typing import Final

import msgspec
from msgspec import Struct

from stringd.wire.exec import encodable
from stringd.wire.terminal import ShownEvent


class View(Struct, rename="camel", kw_only=True):
    """A part of the answer."""


class OutlineView(View):
    """What can be opened in the document by `#id`; `level` is 0 for what is not a heading."""

    id: str
    title: str
    level: int


class MenuEntryView(View):
    """`/open @<id>` follows it."""

    id: str
    label: str
    target: str


class MenuView(View):
    name: str
    entries: list[MenuEntryView]


class FieldView(View):
    """One input of an action."""

    name: str
    type: str
    required: bool
    description: str
    default: str | None
    choices: list[str]
    minimum: float | None
    maximum: float | None


class ActionView(View):
    """`/act.<id> --<field> <value> …` runs it."""

    id: str
    method: str
    fields: list[FieldView]


class DocumentView(View):
    """The open document. `problem` says why its text is missing."""

    uri: str
    shown: str
    """The address as replies name it."""
    title: str
    block: str | None
    markdown: str
    """The document, or its open block, as a reader sees it."""
    cut: bool
    """Whether the text is longer than what is given here."""
    outline: list[OutlineView]
    menus: list[MenuView]
    shortcuts: list[str]
    """Every name that `/open @name` knows here."""
    actions: list[ActionView]
    warnings: list[str]
    problem: str


class PlaceView(View):
    """Where the topic was before."""

    shown: str
    block: str | None
    title: str


class VariableView(View):
    """A variable as `/set` shows it."""

    name: str
    value: str
    masked: bool


class RunningView(View):
    """A command whose client has not been answered."""

    command: str
    client: str
    ms: float


class ShellView(View):
    """The live shell of a bash topic. `command` is the one that runs."""

    alive: bool
    busy: bool
    pid: int
    directory: str
    level: str
    command: str
    waits_for_input: bool
    seconds_left: float | None
    """Until the command is ended, unless somebody attends to it."""


class TerminalView(View):
    """What the terminal showed last; the stream continues at `position`."""

    position: str
    events: list[ShownEvent]


class CommandForm(View):
    """A command that can be typed in the topic."""

    form: str
    what: str


class TopicView(View):
    user: str
    topic: str
    type: str
    home: str
    """Of the user: what `~` means."""
    executing: bool
    running: list[RunningView]
    queued: list[str]
    commands: list[CommandForm]
    document: DocumentView | None
    history: list[PlaceView]
    """Where `/back` leads, the nearest first."""
    variables: list[VariableView]
    variables_problem: str
    shell: ShellView | None
    terminal: TerminalView | None


_encode: Final = msgspec.json.Encoder().encode


def encode_view(view: TopicView) -> bytes:
    """The answer's body; what is not UTF-8 in a file or its name is shown as `�`."""
    try:
        return _encode(view)
    except UnicodeEncodeError:
        return _encode(encodable(msgspec.to_builtins(view)))
