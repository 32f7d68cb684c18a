"""The table of commands. A new command is a handler in a module here and one entry below."""

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Final

from stringd.runtime.call import Call
from stringd.runtime.command import CommandLine, parse_command
from stringd.runtime.commands import (
    act,
    bash,
    editing,
    execute,
    info,
    listing,
    nav,
    navigation,
    packages,
    tools,
    topics,
    variables,
)
from stringd.runtime.commands import help as help_command
from stringd.runtime.errors import CommandError
from stringd.runtime.viewing import wake
from stringd.wire.result import Result

if TYPE_CHECKING:
    from stringd.runtime.session import Session
    from stringd.runtime.workspace import Workspace

Handler = Callable[[Call], Result | Awaitable[Result]]

COMMANDS: Final[dict[str, Handler]] = {
    "help": help_command.help_,
    "open": navigation.open_,
    "back": navigation.back,
    "refresh": navigation.refresh,
    "nav": nav.nav,
    "source": navigation.source,
    "write": editing.write,
    "append": editing.append,
    "edit": editing.edit,
    "replace": editing.replace,
    "verify": editing.verify,
    "undo": editing.undo,
    "info": info.info,
    "set": variables.set_,
    "close": topics.close,
    "ls": listing.ls,
    "exec": execute.exec_,
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
    call = Call(runtime, session, parse_command(text), cwd)
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
