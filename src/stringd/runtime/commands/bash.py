"""Bash topics: plain text goes to the topic's shell, `//name` is a command about it."""

import os
import re
from collections.abc import Awaitable, Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, NamedTuple

from msgspec.structs import replace

from stringd.formats.duration import USAGE as DURATION_USAGE
from stringd.formats.duration import parse_duration, shown_duration
from stringd.runtime.commands.topics import dropped_line
from stringd.runtime.errors import CommandError, NotSavedError
from stringd.runtime.settings import OWN_PLACES, WORK_DIRECTORY
from stringd.runtime.shell import wording
from stringd.runtime.shell.command import ShellLimits
from stringd.runtime.shell.errors import (
    BadRangeError,
    NothingRunningError,
    ShellBusyError,
    ShellError,
    ShellUnavailableError,
    UnknownKeyError,
    UnusableInputError,
)
from stringd.runtime.shell.keys import key_bytes
from stringd.runtime.shell.output import USAGE, excerpt
from stringd.runtime.shell.reply import ShellReply
from stringd.runtime.shell.shell import Shell
from stringd.runtime.shell.terminal import ScreenSize
from stringd.runtime.shell.walls import ShellWalls
from stringd.runtime.topics.call import Caller
from stringd.system.sandbox import Level, Nothing, find_available
from stringd.wire.result import Result

if TYPE_CHECKING:
    from stringd.runtime.settings import RuntimeSettings
    from stringd.runtime.topics.session import Session
    from stringd.runtime.topics.topics import Topics

SANDBOX_VARIABLE: Final = "_sandbox"
"""What a topic asked for; kept with its other settings."""
TIMEOUT_VARIABLE: Final = "_timeout"
"""How many seconds commands of a topic may run, where it asked for more or less than usual."""
DEFAULT_WAIT_SECONDS: Final = 30.0
MAX_WAIT_SECONDS: Final = 3600.0
_SIZE: Final = re.compile(r"(\d{1,4})x(\d{1,4})")
_META: Final = re.compile(r"//(?P<name>\S*)[ \t]?(?P<rest>.*)", re.DOTALL)
HELP: Final = (
    ("<text>", "Run it in this topic's shell; several lines are one sequence"),
    ("//help", "Show this"),
    ("//info", "Show where the shell is"),
    ("//close", "End the shell and everything it started"),
    ("//sandbox [level]", "Show or set how far this topic's shells reach"),
    ("//input <text>", "Type text and Enter into the running command"),
    ("//key <key> ...", "Press keys: ctrl-c, ctrl-d, enter, tab, escape, up, f1, q, ..."),
    ("//wait [seconds]", f"Wait longer for the running command ({DEFAULT_WAIT_SECONDS:g})"),
    ("//timeout [20m]", "How long this and later commands may run; with a command, that one alone"),
    ("//screen <size> <command>", "Run a program that draws, on a screen of 100x30 or so"),
    ("//kill", "End the running command"),
    ("//output [range]", "Read the last output: 100-200, -50, bytes 0-4096, background"),
)


class BashCall(NamedTuple):
    """One message to a bash topic; `text` is what follows a `//name`, or all of plain input."""

    settings: "RuntimeSettings"
    topics: "Topics"
    session: "Session"
    text: str
    caller: Caller

    @property
    def shell(self) -> Shell | None:
        """The topic's shell, also one that has ended."""
        shell = self.session.running
        return shell if isinstance(shell, Shell) else None

    @property
    def start_directory(self) -> str:
        return self.caller.cwd or self.session.user.home

    @property
    def level(self) -> Level:
        """What a new shell of the topic runs in: never wider than the owner lets shells be."""
        asked = self.session.variables.get(SANDBOX_VARIABLE, "")
        widest = Level(self.settings.bash_sandbox)
        return narrower(Level(asked), widest) if asked in set(Level) else widest

    @property
    def client(self) -> str:
        """What the client calls itself."""
        name = self.caller.client
        return (name if isinstance(name, str) else name.decode("utf-8", "replace"))[:80]

    @property
    def limit(self) -> float:
        """How long a command may run: what its caller or the topic asked for, or as usual."""
        asked = parse_duration(self.session.variables.get(TIMEOUT_VARIABLE, ""))
        return self.caller.limit or asked or self.settings.bash_timeout

    async def permitted(self) -> None:
        """An agent of a run is asked before its text reaches a shell. Raises `CommandError`."""
        if self.caller.permission is not None:
            await self.caller.permission.command(self.text)


async def bash(
    settings: "RuntimeSettings", topics: "Topics", session: "Session", text: str, caller: Caller
) -> Result:
    """Answer one message to a bash topic. Raises `CommandError`."""
    if not text.strip():
        raise CommandError("COMMAND_UNSUPPORTED", "Empty input.")
    match = _META.fullmatch(text.lstrip())
    handler: Handler = run
    if match is not None:
        handler = _meta_command(match["name"])
        text = match["rest"].removeprefix("\n").removesuffix("\n")
    call = BashCall(settings, topics, session, text, caller)
    if call.shell is not None:
        call.shell.successor_directory = call.start_directory
    try:
        return await handler(call)
    except ShellError as error:
        raise _refusal(error) from error


def bypasses_queue(session: "Session", text: str, waiting: int) -> bool:
    """Whether a message is for the running command: it must not wait until that has answered.

    Where others are `waiting`, text to type may be meant for one of them and keeps its place.
    """
    shell = session.running
    if not isinstance(shell, Shell) or not shell.busy:
        return False
    match = _META.fullmatch(text.lstrip())
    command = META_COMMANDS.get(match["name"].lower()) if match is not None else None
    if match is None or command is None or command.for_running is None:
        return False
    if command.for_running == "without a command":
        return len(match["rest"].split()) < 2
    return command.for_running == "always" or not waiting


def attend(session: "Session") -> float | None:
    """Renew the running command's time limit; the seconds it has now, None where none runs."""
    shell = session.running
    return shell.attend() if isinstance(shell, Shell) else None


async def run(call: BashCall, screen: ScreenSize | None = None) -> Result:
    """Plain text: the shell's input. The first one starts the shell."""
    await call.permitted()
    shell = call.shell
    if shell is not None and shell.usable:
        return reply_result(await shell.run(call.text, call.limit, call.client, screen))
    restarted = shell is None and call.session.had_shell
    await call.session.release()
    fresh = await _fresh_shell(call)
    reply = await fresh.run(call.text, call.limit, call.client, screen)
    if restarted:
        reply = reply._replace(notes=(*reply.notes, wording.restarted()))
    elif shell is not None and not shell.end_told:
        reply = reply._replace(notes=(*reply.notes, wording.started_anew()))
    return reply_result(reply)


async def help_(_call: BashCall) -> Result:
    width = max(len(form) for form, _ in HELP) + 2
    lines = ["Input goes to the shell; commands about the topic start with //.", ""]
    return Result.page(
        "Bash Session", "\n".join([*lines, *(f"{form:<{width}}{what}" for form, what in HELP)])
    )


async def info(call: BashCall) -> Result:
    shell = call.shell
    rows: list[tuple[str, str]] = []
    if shell is None or shell.ended:
        rows.append(("cwd", "(no active shell)"))
    else:
        rows += [("cwd", _shown(shell.directory, call.session.user.home)), ("pid", "running")]
        if shell.busy and shell.command is not None:
            rows.append(("command", f"{shell.command.title} (running)"))
        if shell.background.seen:
            rows.append(("background", "jobs printed meanwhile; read it with //output background"))
    level = call.level if shell is None or shell.ended else shell.level
    if level is not Level.OPEN:
        rows.append(("sandbox", level))
    if call.session.variables:
        held = call.session.variables.items()
        rows.append(("vars", ", ".join(f'{{{name}}}="{value}"' for name, value in held)))
    return Result.page("Bash session info", "\n".join(f"{k + ':':<11}{v}" for k, v in rows))


async def sandbox(call: BashCall) -> Result:
    """Show or change how far the shells of this topic reach."""
    asked = call.text.strip().lower()
    if not asked:
        return Result.done(f"sandbox: {call.level}")
    if asked not in set(Level):
        raise CommandError("INVALID_PAYLOAD", f"Usage: //sandbox {' | '.join(Level)}")
    wanted, widest = Level(asked), Level(call.settings.bash_sandbox)
    if narrower(wanted, widest) is not wanted:
        raise CommandError(
            "FILE_NOT_ALLOWED",
            f"Shells of this daemon reach no further than {widest}. Its owner can change that "
            f"with STRINGD_BASH_SANDBOX={wanted}.",
        )
    if narrower(wanted, call.level) is not wanted:
        await call.permitted()
    await prepared_walls(call.settings, wanted)
    running = call.shell is not None and not call.shell.ended
    await call.session.release()
    call.session.assign(SANDBOX_VARIABLE, wanted)
    ended = " The shell that ran was ended." if running else ""
    return Result.done(f"sandbox: {wanted}. The next input starts a shell in it.{ended}")


async def close(call: BashCall) -> Result:
    session = call.session
    dropped = dropped_line(call.topics.drop_waiting(session.user.id, session.topic))
    await session.reset()
    return Result.done(f"Bash session closed.{dropped}")


async def input_(call: BashCall) -> Result:
    await call.permitted()
    return reply_result(await _live(call).type(call.text.encode(errors="replace") + b"\n"))


async def key(call: BashCall) -> Result:
    await call.permitted()
    return reply_result(await _live(call).type(key_bytes(call.text)))


async def wait(call: BashCall) -> Result:
    shell = call.shell
    if shell is None:
        raise NothingRunningError
    return reply_result(await shell.wait(_seconds(call.text.strip())))


async def timeout(call: BashCall) -> Result:
    """Show or set how long commands of this topic may run; with a command, only that one."""
    given, _, command = call.text.strip().replace("\n", " \n", 1).partition(" ")
    if not given:
        return Result.done(f"timeout: {shown_duration(call.limit)}")
    seconds = parse_duration(given)
    if seconds is None:
        raise CommandError("INVALID_PAYLOAD", f"Not a time: {given}\n{DURATION_USAGE}")
    if command.strip():
        caller = replace(call.caller, limit=seconds)
        return await run(call._replace(text=command.strip("\n"), caller=caller))
    running = call.shell is not None and call.shell.busy
    if call.shell is not None and running:
        call.shell.allow(seconds)
    call.session.assign(TIMEOUT_VARIABLE, shown_duration(seconds))
    now = ", the one that runs too, from now on" if running else ""
    return Result.done(f"timeout: {shown_duration(seconds)} for commands of this topic{now}.")


async def screen(call: BashCall) -> Result:
    """Run a command that may draw: an editor, a pager, a monitor."""
    given, _, command = call.text.strip().replace("\n", " \n", 1).partition(" ")
    found = _SIZE.fullmatch(given)
    size = ScreenSize(int(found[1]), int(found[2])) if found else None
    if size is None or not size.possible or not command.strip():
        raise CommandError(
            "INVALID_PAYLOAD", "Usage: //screen <columns>x<rows> <command>, such as 100x30 top"
        )
    return await run(call._replace(text=command.strip("\n")), size)


async def kill(call: BashCall) -> Result:
    shell = call.shell
    if shell is None or not shell.busy:
        return Result.done("No command is running.")
    return reply_result(await shell.kill())


async def output(call: BashCall) -> Result:
    shell, wanted = call.shell, call.text.strip()
    if shell is not None and wanted.lower() == "background":
        return Result.page("output: background", shell.background.read().text or "(no output)")
    if shell is None or shell.command is None:
        raise CommandError("INVALID_TARGET", "No output yet: no command has run in this topic.")
    shell.command.output.settle()
    title, text = excerpt(shell.command.output.transcript, wanted)
    return Result.page(title, text or "(no output)")


Handler = Callable[[BashCall], Awaitable[Result]]


class MetaCommand(NamedTuple):
    """A `//name`, and when it goes to the running command without waiting for its turn."""

    handler: Handler
    for_running: Literal["always", "alone", "without a command"] | None = None


META_COMMANDS: Final[dict[str, MetaCommand]] = {
    "help": MetaCommand(help_),
    "info": MetaCommand(info),
    "close": MetaCommand(close),
    "sandbox": MetaCommand(sandbox),
    "input": MetaCommand(input_, "alone"),
    "key": MetaCommand(key, "always"),
    "wait": MetaCommand(wait),
    "timeout": MetaCommand(timeout, "without a command"),
    "screen": MetaCommand(screen),
    "kill": MetaCommand(kill, "always"),
    "output": MetaCommand(output),
}


def reply_result(reply: ShellReply) -> Result:
    """A shell's reply in the layout every caller knows."""
    code = "running" if reply.exit_code is None else str(reply.exit_code)
    message = f"exit: {code} | cwd: {reply.cwd}"
    content = "\n".join([reply.output or "(no output)", *(f"[{note}]" for note in reply.notes)])
    if reply.exit_code in (0, None):
        return Result.page(message, content)
    return Result.error(f"EXIT_{code}", message, content)


async def _fresh_shell(call: BashCall) -> Shell:
    settings, home = call.settings, call.session.user.home
    walls = await prepared_walls(settings, call.level)
    shell = Shell.launch(
        home=home,
        cwd=call.start_directory,
        base=os.environ,
        variables=call.session.variables,
        limits=ShellLimits(settings.bash_timeout, settings.bash_quiet),
        walls=walls,
        caller=call.caller.environment,
        scrollback=call.session.terminal(),
    )
    # Known to the session before it is ready: a topic closed meanwhile ends it too.
    call.session.running = shell
    shell.successor_directory = call.start_directory
    # On disk before it runs anything: a shell that is lost with the daemon is not forgotten.
    call.session.had_shell = True
    keeping = call.topics.save(call.session) if call.topics.holds(call.session) else None
    if keeping is not None:
        with suppress(NotSavedError):
            await keeping
    await shell.ready()
    return shell


async def prepared_walls(settings: "RuntimeSettings", level: Level) -> ShellWalls:
    """The walls of a shell at a level. Raises `CommandError` where this machine has none."""
    if level is not Level.OPEN:
        found = await find_available()
        if isinstance(found, Nothing):
            raise CommandError(
                "INTERNAL_ERROR", f"No shell in a sandbox on this machine. {found.reason}."
            )
    return ShellWalls(level, (settings.data_dir,), (*OWN_PLACES, WORK_DIRECTORY))


def narrower(one: Level, other: Level) -> Level:
    order = list(Level)
    return min(one, other, key=order.index)


def _live(call: BashCall) -> Shell:
    if call.shell is None or not call.shell.busy:
        raise NothingRunningError
    return call.shell


def _meta_command(name: str) -> Handler:
    if not name:
        raise CommandError("COMMAND_UNSUPPORTED", "Invalid meta-command. Use //help for details.")
    command = META_COMMANDS.get(name.lower())
    if command is None:
        raise CommandError(
            "COMMAND_UNSUPPORTED",
            f"Unknown bash meta-command: //{name}\nUse //help for available commands.",
        )
    return command.handler


def _seconds(text: str) -> float:
    if not text:
        return DEFAULT_WAIT_SECONDS
    if re.fullmatch(r"\d{1,6}(\.\d{1,3})?", text) is None:
        raise CommandError("INVALID_PAYLOAD", f"Not a number of seconds: {text}")
    return min(float(text), MAX_WAIT_SECONDS)


def _shown(directory: str, home: str) -> str:
    if directory == home:
        return "~/"
    if Path(home) in Path(directory).parents:
        return f"~/{Path(directory).relative_to(home)}/"
    return directory


def _refusal(error: ShellError) -> CommandError:
    match error:
        case ShellBusyError(command=command):
            return CommandError(
                "CONFLICT",
                f"Not run: `{command}` is still running in this topic.\n"
                "Continue it with //input <text>, //key ctrl-c, //wait [seconds] or //kill, "
                "or use another bash topic.",
            )
        case NothingRunningError():
            return CommandError("INVALID_TARGET", "No command is running.")
        case UnknownKeyError(name=name):
            return CommandError(
                "INVALID_PAYLOAD",
                f"Unknown key: {name}\nKeys: ctrl-<letter>, enter, tab, escape, space, backspace, "
                "delete, up, down, left, right, home, end, page-up, page-down, f1-f12, or one "
                "character.",
            )
        case BadRangeError():
            return CommandError("INVALID_PAYLOAD", f"Not a range: {error}\nUsage: {USAGE}")
        case UnusableInputError():
            return CommandError("INVALID_PAYLOAD", str(error))
        case ShellUnavailableError():
            return CommandError("INTERNAL_ERROR", f"Bash error: {error}")
        case _:
            return CommandError("INTERNAL_ERROR", f"Bash error: {error}")
