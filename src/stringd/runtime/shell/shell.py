"""A live bash on a terminal of its own.

One command runs at a time. A caller waits for it until it ends, falls silent or waits for input;
in the last two cases the command lives on and later calls attend to it again. A command nobody
attended to for the hard limit is interrupted, then killed, then its shell is ended: whatever it
does, the shell is usable or gone afterwards.
"""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Final, Self

from stringd.runtime.shell import wording
from stringd.runtime.shell.bash import Bash, launch
from stringd.runtime.shell.command import ShellCommand, ShellLimits
from stringd.runtime.shell.control import (
    DRAW,
    PLAIN,
    SETUP,
    Control,
    ShellReport,
    command_lines,
    report_line,
    rescue_line,
)
from stringd.runtime.shell.errors import (
    NothingRunningError,
    ShellBusyError,
    ShellUnavailableError,
)
from stringd.runtime.shell.foreground import Foreground
from stringd.runtime.shell.output import Background
from stringd.runtime.shell.reply import ShellEnding, ShellReply
from stringd.runtime.shell.scrollback import Scrollback
from stringd.runtime.shell.terminal import ScreenSize
from stringd.runtime.shell.walls import NO_WALLS, TERMINAL, ShellWalls
from stringd.system.processes.table import program, working_directory
from stringd.system.processes.tree import end_tree
from stringd.system.sandbox import Level, processes_inside
from stringd.system.vouched import NOTHING_VOUCHED

_START_SECONDS: Final = 20.0
# Part of the quiet time after which a command that waits for input is reported.
_WAITING_SHARE: Final = 0.1
_TIMED_OUT: Final = 124


class Shell:
    """Use `Shell.launch`, then `ready`. Once `ended`, only its last output can still be read."""

    def __init__(
        self, home: str, limits: ShellLimits, scrollback: Scrollback | None = None
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._limits = limits
        self._scrollback = scrollback or Scrollback()
        self._ready: asyncio.Future[int] = self._loop.create_future()
        self._count = 0
        self._reported_directory = home
        self._replaced = False
        self._closed = False
        self._stopping: asyncio.Task[None] | None = None
        self._burial: asyncio.Task[None] | None = None
        self.successor_directory = home
        """Where the shell after this one would start."""
        self.end_told = False
        """Whether a reply has said that the shell ended."""
        self.command: ShellCommand | None = None
        self.screen: ScreenSize | None = None
        """What the last command may draw on."""
        self.background = Background()
        self.level = Level.OPEN
        """How far it reaches."""

    @classmethod
    def launch(
        cls,
        *,
        home: str,
        cwd: str,
        base: Mapping[str, str],
        variables: Mapping[str, str] | None = None,
        limits: ShellLimits | None = None,
        walls: ShellWalls = NO_WALLS,
        caller: Mapping[str, str] = NOTHING_VOUCHED,
        scrollback: Scrollback | None = None,
    ) -> Self:
        """Start a shell in `cwd`; `ready` must follow. Raises `ShellUnavailableError`.

        What its terminal shows is added to `scrollback`.
        """
        shell = cls(home, limits or ShellLimits(), scrollback)
        bash = launch(
            home=home,
            cwd=cwd,
            base=base,
            variables=variables,
            on_data=shell._received,
            walls=walls,
            caller=caller,
        )
        shell._attach(bash)
        shell.level = walls.level
        return shell

    async def ready(self) -> None:
        """Return when the first command may be given. Raises `ShellUnavailableError`."""
        await self._control.send(SETUP.encode() + report_line(0))
        done, _ = await asyncio.wait({self._ready}, timeout=_START_SECONDS)
        if not done or self._ready.result() != 0:
            await self.close()
            raise ShellUnavailableError("bash did not start")
        if self._walled:
            self._find_inside()

    @property
    def pid(self) -> int:
        """Of the shell itself, also inside a sandbox."""
        return self._pid

    @property
    def ended(self) -> bool:
        return self._child.exited.done()

    @property
    def usable(self) -> bool:
        """Whether it can take input: an end that has just happened counts."""
        return self._child.lives

    @property
    def busy(self) -> bool:
        return self.command is not None and not self.command.over

    @property
    def waits_for_input(self) -> bool:
        """Whether the running command sleeps until something is typed."""
        return self.busy and self._foreground.waits_for_input()

    @property
    def seconds_left(self) -> float | None:
        """Until the running command is ended, unless somebody attends to it again."""
        if self.command is None or not self.busy:
            return None
        return round(max(0.0, self.command.deadline - self._loop.time()), 1)

    @property
    def directory(self) -> str:
        """Where the shell is: the path it was reached by, while that still leads there."""
        reported = self._reported_directory
        actual = None if self.ended else working_directory(self.pid)
        if actual is None or actual == reported or _same_directory(reported, self.pid):
            return reported
        return actual

    async def run(
        self,
        text: str,
        limit: float | None = None,
        by: str = "",
        screen: ScreenSize | None = None,
    ) -> ShellReply:
        """Run `text`, which came from `by`, and wait for its end, its silence or its question.

        `limit` replaces the hard limit for this command, which may draw on a `screen`. Raises
        `ShellBusyError` while an earlier command lives, `UnusableInputError`.
        """
        if self.command is not None:
            if self.busy:
                raise ShellBusyError(self.command.title)
            self.command.output.transcript.close()
        status = (self.command.status if self.command else None) or 0
        terminal = TERMINAL if self._walled else self._terminal.path
        lines = command_lines(self._count + 1, text, terminal, status)
        self._count += 1
        self._terminal.drain()
        self._terminal.forget_typed()
        command = ShellCommand(self._count, text, self._loop.time(), limit or self._limits.hard)
        if self.screen:
            lines = PLAIN + lines
        self.command, self.screen = command, screen
        if screen is not None:
            self._terminal.become_screen(screen)
            lines = DRAW + lines
        self._scrollback.began(text, self._reported_directory, by, screen)
        await self._control.send(lines)
        return await self._attend(command)

    async def type(self, data: bytes) -> ShellReply:
        """Type into the running command. Raises `NothingRunningError`."""
        command = self._running()
        self._extend(command, self._limits.hard)
        self._terminal.write(data)
        if command.attended:
            await command.wait(self._limits.grace)
            return self._reply_beside(command)
        return await self._attend(command)

    def press(self, data: bytes) -> None:
        """Type into the running command without waiting for what it says.

        Raises `NothingRunningError`.
        """
        self._extend(self._running(), self._limits.hard)
        self._terminal.write(data)

    def resize(self, size: ScreenSize) -> None:
        """Change the screen of the running command. Raises `NothingRunningError`."""
        self._running()
        if self.screen is not None:
            self.screen = size
            self._terminal.resize(size)
            self._scrollback.resized(size)

    async def wait(self, seconds: float) -> ShellReply:
        """Wait longer for the last command; its final reply also when it has ended meanwhile.

        Raises `NothingRunningError` before the first command.
        """
        if self.command is None:
            raise NothingRunningError
        self._extend(self.command, max(self._limits.hard, seconds + self._limits.grace))
        return await self._attend(self.command, seconds)

    def attend(self) -> float | None:
        """Renew the running command's time limit, since somebody still wants it.

        The seconds it has now; None where no command runs.
        """
        if self.command is None or not self.busy:
            return None
        self._extend(self.command, self._limits.hard)
        return self._left(self.command)

    def allow(self, seconds: float) -> None:
        """Give the running command this long from now. Raises `NothingRunningError`."""
        command = self._running()
        command.limit = seconds
        command.deadline = self._loop.time() + seconds
        self._watch_deadline(command)

    async def kill(self) -> ShellReply:
        """End the running command, the shell with it if need be. Raises `NothingRunningError`."""
        command = self._running()
        beside = command.attended > 0
        await self._stop(command, self._limits.grace / 4)
        return self._reply_beside(command) if beside else await self._attend(command)

    async def close(self) -> None:
        """End the shell and everything it started, and forget its last output."""
        self._closed = True
        await self._end()
        if self.command is not None:
            self.command.output.transcript.close()

    async def _end(self) -> None:
        await end_tree(self._child, self._mark)
        if self._burial is None:
            # The exit is known before its callback has run.
            await asyncio.sleep(0)
        if self._burial is not None:
            await asyncio.shield(self._burial)

    def _attach(self, bash: Bash) -> None:
        self._child, self._terminal, _, self._mark, self._walled = bash
        self._pid = bash.child.pid
        self._foreground = Foreground(self._pid, bash.terminal)
        self._control = Control(bash.control, self._reported, self._lost)
        self._child.exited.add_done_callback(self._exited)

    def _find_inside(self) -> None:
        """What is watched and interrupted is the shell, not the walls around it."""
        inside = processes_inside(self._child.pid)
        if inside:
            self._pid = inside[0].pid
            self._foreground = Foreground(self._pid, self._terminal)

    def _received(self, data: bytes) -> None:
        self._scrollback.printed(data)
        command = self.command
        if command is None or command.over:
            self.background.feed(data)
        else:
            command.printed_at = self._loop.time()
            command.output.feed(data)

    def _reported(self, report: ShellReport) -> None:
        self._reported_directory = report.directory
        if report.number == 0 and not self._ready.done():
            self._ready.set_result(report.status)
        command = self.command
        if command is not None and report.number == command.number:
            self._terminal.drain()
            self._finish(command, report.status)
        elif command is not None and report.number == -command.number and not command.over:
            command.hidden = True
            self._finish(command, report.status)

    def _finish(self, command: ShellCommand, status: int) -> None:
        if not command.over:
            self._scrollback.ended(status, self._reported_directory)
            if self.screen is not None:
                self._terminal.become_plain()
        command.finish(status)

    def _lost(self) -> None:
        """No bash at the other end: it ended, which its exit tells, or became another program."""
        self._replaced = True

    def _exited(self, exited: asyncio.Future[int]) -> None:
        self._terminal.drain()
        if not self._ready.done():
            self._ready.set_result(exited.result() or 1)
        if self.command is not None:
            self._finish(self.command, exited.result())
        self._burial = self._loop.create_task(self._clear_away())

    async def _clear_away(self) -> None:
        await end_tree(self._child, self._mark)
        self._terminal.close()
        self._control.close()

    def _running(self) -> ShellCommand:
        if self.command is None or not self.busy:
            raise NothingRunningError
        return self.command

    async def _attend(self, command: ShellCommand, patience: float | None = None) -> ShellReply:
        """Wait for the command's end; report it alive when waiting longer makes no sense."""
        if command.expiry is not None:
            command.expiry.cancel()
        started = self._loop.time()
        command.attended += 1
        try:
            while not command.over:
                now = self._loop.time()
                silent = now - max(command.printed_at, started)
                if silent >= self._limits.quiet * _WAITING_SHARE and not command.asked_again:
                    # The first question may be lost, and the command long over.
                    command.asked_again = True
                    await self._control.send(rescue_line(command.number))
                left = None if patience is None else started + patience - now
                if now >= command.deadline:
                    self._expire(command)
                alive = self._alive_reply(command, silent, left)
                if alive is not None:
                    return alive
                await command.wait(self._pause(command, silent, left))
        finally:
            command.attended -= 1
            self._watch_deadline(command)
        return await self._final_reply(command)

    def _pause(self, command: ShellCommand, silent: float, left: float | None) -> float:
        """Until the next moment at which something about a silent command may be decided."""
        step = self._limits.quiet * _WAITING_SHARE
        pause = step - silent % step
        if left is not None:
            pause = min(pause, left)
        if not command.expired:
            pause = min(pause, command.deadline - self._loop.time())
        return max(pause, 0.01)

    def _alive_reply(
        self, command: ShellCommand, silent: float, left: float | None
    ) -> ShellReply | None:
        quiet = self._limits.quiet
        if command.expired:
            return None
        over = left is not None and left <= 0
        # Who knows that it waits and still wants to wait shall get the time asked for.
        news = left is None or command.told_waiting_at != command.printed_at
        settled = silent >= quiet * _WAITING_SHARE and news
        if (over or settled) and self._foreground.waits_for_input():
            command.told_waiting_at = command.printed_at
            return self._unfinished(command, ShellEnding.WAITING, wording.waiting(command.title))
        if over:
            note = wording.running(command.title, self._left(command))
            return self._unfinished(command, ShellEnding.RUNNING, note)
        if left is None and silent >= quiet:
            note = wording.silent(command.title, quiet, self._left(command))
            return self._unfinished(command, ShellEnding.RUNNING, note)
        return None

    def _unfinished(self, command: ShellCommand, ending: ShellEnding, note: str) -> ShellReply:
        notes = [note]
        if self._replaced:
            notes.append(wording.replaced(program(self.pid)))
        text, truncated = command.output.take()
        return ShellReply(ending, None, self.directory, text, truncated, tuple(notes))

    async def _final_reply(self, command: ShellCommand) -> ShellReply:
        ending, status, directory = ShellEnding.COMPLETED, command.status, self.directory
        notes: list[str] = []
        if command.expired:
            ending, status = ShellEnding.TIMED_OUT, _TIMED_OUT
            notes.append(wording.timed_out(command.limit, killed=command.killed))
        if self.ended:
            ending = ShellEnding.SHELL_ENDED if ending is ShellEnding.COMPLETED else ending
            directory = self.successor_directory
            self.end_told = True
            code = self._child.exited.result()
            notes.append(wording.shell_ended(code, self._child.signal, closed=self._closed))
            await self._end()
        elif command.hidden:
            notes.append(wording.hidden())
        text, truncated = command.output.take(over=True)
        if self.ended and self._child.signal is None:
            text = command.without_farewell(text)
        return ShellReply(ending, status, directory, text, truncated, tuple(notes))

    def _reply_beside(self, command: ShellCommand) -> ShellReply:
        """For who meddled with a command whose output another caller waits for."""
        ending = ShellEnding.COMPLETED if command.over else ShellEnding.RUNNING
        directory = self.successor_directory if self.ended else self.directory
        note = wording.elsewhere(command.title)
        return ShellReply(ending, command.status, directory, "", notes=(note,))

    def _extend(self, command: ShellCommand, seconds: float) -> None:
        """Attention renews the time limit, and never shortens a longer one."""
        deadline = self._loop.time() + seconds
        if deadline > command.deadline:
            command.limit = seconds
            command.deadline = deadline
            self._watch_deadline(command)

    def _left(self, command: ShellCommand) -> float:
        return max(command.deadline - self._loop.time(), 0.0)

    def _watch_deadline(self, command: ShellCommand) -> None:
        """Whoever waits for a command looks at its deadline; where nobody does, a timer must."""
        if command.expiry is not None:
            command.expiry.cancel()
        if not command.over and not command.attended:
            command.expiry = self._loop.call_at(command.deadline, self._expire, command)

    def _expire(self, command: ShellCommand) -> None:
        if not command.over and not command.expired:
            command.expired = True
            self._stopping = self._loop.create_task(self._stop(command, self._limits.grace))

    async def _stop(self, command: ShellCommand, grace: float) -> None:
        """Interrupt, then kill, then end the shell, until the command is over."""
        for end in (self._foreground.interrupt, self._foreground.kill):
            end()
            await command.wait(grace)
            if command.over:
                return
            command.killed = True
            # The interrupt may have hit the report itself.
            await self._control.send(report_line(command.number))
        await self._end()


def _same_directory(path: str, pid: int) -> bool:
    """Whether a path, perhaps over symbolic links, leads to where the process is."""
    try:
        return Path(path).samefile(f"/proc/{pid}/cwd")
    except OSError:
        return False
