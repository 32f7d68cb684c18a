"""The table of commands. A new command is a handler in a module here and one entry below."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from stringd.runtime.commands import (
    act,
    apps,
    bash,
    edit,
    events,
    find,
    info,
    ls,
    menus,
    outline,
    packages,
    tools,
    topics,
    update,
)
from stringd.runtime.commands import exec as exec_command
from stringd.runtime.commands import help as help_command
from stringd.runtime.commands import open as open_command
from stringd.runtime.commands import set as set_command
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.show import wake
from stringd.runtime.topics.call import Call, Caller
from stringd.runtime.topics.line import CommandLine, parse_line
from stringd.wire.result import Result

if TYPE_CHECKING:
    from stringd.runtime.services import Services
    from stringd.runtime.topics.session import Session
    from stringd.runtime.topics.topics import Topics

Handler = Callable[[Call], Result | Awaitable[Result]]


class CommandEntry(NamedTuple):
    """A command's handler, and what the runtime has to know about it."""

    handler: Handler
    reads_only: bool = False
    """It changes nothing that must be stored: the hot path."""


COMMANDS: Final[dict[str, CommandEntry]] = {
    "help": CommandEntry(help_command.help_, reads_only=True),
    "open": CommandEntry(open_command.open_),
    "back": CommandEntry(open_command.back),
    "refresh": CommandEntry(open_command.refresh),
    "nav": CommandEntry(menus.nav),
    "source": CommandEntry(open_command.source, reads_only=True),
    "write": CommandEntry(edit.write),
    "append": CommandEntry(edit.append),
    "edit": CommandEntry(edit.edit),
    "replace": CommandEntry(edit.replace),
    "verify": CommandEntry(edit.verify),
    "undo": CommandEntry(edit.undo),
    "outline": CommandEntry(outline.outline_),
    "find": CommandEntry(find.find),
    "info": CommandEntry(info.info, reads_only=True),
    "set": CommandEntry(set_command.set_),
    "close": CommandEntry(topics.close),
    "ls": CommandEntry(ls.ls, reads_only=True),
    "exec": CommandEntry(exec_command.exec_),
    "events": CommandEntry(events.events, reads_only=True),
    "topics": CommandEntry(topics.topics, reads_only=True),
    "sessions": CommandEntry(topics.topics, reads_only=True),
    "session": CommandEntry(topics.session),
    "act": CommandEntry(act.act),
    "action": CommandEntry(act.act),
    "install": CommandEntry(packages.install),
    "uninstall": CommandEntry(packages.uninstall),
    "update": CommandEntry(update.update),
    "apps": CommandEntry(apps.apps, reads_only=True),
}

FAMILIES: Final[dict[str, CommandEntry]] = {
    "act.": CommandEntry(act.act),
    "action.": CommandEntry(act.act),
    "tool:": CommandEntry(tools.tool),
    "events.": CommandEntry(events.events),
}
"""Commands that carry a name of their own: `/act.search`."""
_PAGE_ACTION: Final = CommandEntry(act.act)
_YIELDING: Final = frozenset(("outline", "find", "update", "apps"))
"""Commands that are not the protocol's: a page's own action of that name comes first."""


Dispatched = tuple[Result | Awaitable[Result], bool]
"""What a command answers, at once or later, and whether it only reads."""


def dispatch(
    services: "Services", topics: "Topics", session: "Session", text: str, caller: Caller
) -> Dispatched:
    """Route one command to its handler. Raises `CommandError` when there is none."""
    if session.topic.type == "bash":
        return bash.bash(services.settings, topics, session, text, caller), False
    call = Call(services, topics, session, parse_line(text), caller)
    if session.location is not None and session.location.page is None:
        return _handled_awake(call), False
    command = _command(call)
    return command.handler(call), command.reads_only


async def _handled_awake(call: Call) -> Result:
    """The document decides which actions are commands, so it is loaded first."""
    await wake(call)
    outcome = _command(call).handler(call)
    return outcome if isinstance(outcome, Result) else await outcome


def _command(call: Call) -> CommandEntry:
    """What a line names. Raises `CommandError`."""
    line = call.line
    command = COMMANDS.get(line.name)
    if command is None or line.name in _YIELDING:
        command = _family(call.session, line) or command
    if command is None:
        raise CommandError(
            "COMMAND_UNSUPPORTED",
            f"Unknown command: /{line.typed}\nUse /info to see available commands.",
        )
    return command


def _family(session: "Session", line: CommandLine) -> CommandEntry | None:
    """The command of a prefixed name, or of the short form `/<id>` of this page's actions."""
    for prefix, command in FAMILIES.items():
        if line.name.startswith(prefix):
            return command
    page = session.location.page if session.location else None
    return _PAGE_ACTION if page is not None and line.typed in page.document.actions else None
