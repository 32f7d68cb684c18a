"""The table of commands. A new command is a handler in a module here and one entry below."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from stringd.runtime.commands import (
    act,
    bash,
    edit,
    info,
    ls,
    menus,
    packages,
    tools,
    topics,
)
from stringd.runtime.commands import exec as exec_command
from stringd.runtime.commands import help as help_command
from stringd.runtime.commands import open as open_command
from stringd.runtime.commands import set as set_command
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.show import wake
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.line import CommandLine, parse_line
from stringd.wire.result import Result

if TYPE_CHECKING:
    from stringd.runtime.topics.session import Session
    from stringd.runtime.workspace import Workspace

Handler = Callable[[Call], Result | Awaitable[Result]]

COMMANDS: Final[dict[str, Handler]] = {
    "help": help_command.help_,
    "open": open_command.open_,
    "back": open_command.back,
    "refresh": open_command.refresh,
    "nav": menus.nav,
    "source": open_command.source,
    "write": edit.write,
    "append": edit.append,
    "edit": edit.edit,
    "replace": edit.replace,
    "verify": edit.verify,
    "undo": edit.undo,
    "info": info.info,
    "set": set_command.set_,
    "close": topics.close,
    "ls": ls.ls,
    "exec": exec_command.exec_,
    "topics": topics.topics,
    "sessions": topics.topics,
    "session": topics.session,
    "act": act.act,
    "action": act.act,
    "install": packages.install,
    "uninstall": packages.uninstall,
}

FAMILIES: Final[dict[str, Handler]] = {
    "act.": act.act,
    "action.": act.act,
    "tool:": tools.tool,
}
"""Commands that carry a name of their own: `/act.search`."""


def dispatch(
    runtime: "Workspace", session: "Session", text: str, cwd: str | None
) -> Result | Awaitable[Result]:
    """Route one command to its handler. Raises `CommandError` when there is none."""
    if session.topic.type == "bash":
        return bash.bash(runtime, session, text, cwd)
    call = Call(runtime, session, parse_line(text), cwd)
    if session.location is not None and session.location.page is None:
        return _handled_awake(call)
    return _handled(call)


async def _handled_awake(call: Call) -> Result:
    """The document decides which actions are commands, so it is loaded first."""
    await wake(call)
    outcome = _handled(call)
    return outcome if isinstance(outcome, Result) else await outcome


def _handled(call: Call) -> Result | Awaitable[Result]:
    line = call.line
    handler = COMMANDS.get(line.name) or _family(call.session, line)
    if handler is None:
        raise CommandError(
            "COMMAND_UNSUPPORTED",
            f"Unknown command: /{line.typed}\nUse /info to see available commands.",
        )
    return handler(call)


def _family(session: "Session", line: CommandLine) -> Handler | None:
    """The handler of a prefixed name, or of the short form `/<id>` of this page's actions."""
    for prefix, handler in FAMILIES.items():
        if line.name.startswith(prefix):
            return handler
    page = session.location.page if session.location else None
    return act.act if page is not None and line.typed in page.document.actions else None
