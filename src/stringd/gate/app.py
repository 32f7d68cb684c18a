"""`stringd gate` as a process: from start-up to the last way out."""

import os
import signal
from collections.abc import Mapping
from types import FrameType
from typing import Final

from stringd import __version__
from stringd.gate.audit import FILE_NAME, AuditLog
from stringd.gate.console import Console, PromptSettings
from stringd.gate.display import Line, Style, line
from stringd.gate.errors import TroubleError
from stringd.gate.execute import Executor
from stringd.gate.listener import Listener
from stringd.gate.notify import Hook
from stringd.gate.server import Server
from stringd.gate.session import Sessions
from stringd.gate.settings import Settings
from stringd.gate.terminal import Terminal, log

# Enough to answer everyone and to kill what runs; a terminal is not held longer than this.
DRAIN_SECONDS: Final = 5.0
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def run(settings: Settings, env: Mapping[str, str]) -> int:
    """Serve until stopped. Ends by the signal that ended it, else returns the exit code."""
    terminal = Terminal.find(env)
    try:
        listener = Listener(settings.socket)
    except TroubleError as error:
        log(f"error: {error}")
        return 1
    try:
        ending = _Gate(settings, env, terminal, listener).serve()
    finally:
        if terminal is not None:
            terminal.restore()
        listener.close()
    if ending is not None:
        # Our parent sees by which signal we ended.
        signal.signal(ending, signal.SIG_DFL)
        os.kill(os.getpid(), ending)
    return 0


class _Gate:
    def __init__(
        self,
        settings: Settings,
        env: Mapping[str, str],
        terminal: Terminal | None,
        listener: Listener,
    ) -> None:
        self._settings = settings
        self._terminal = terminal
        self._ending: signal.Signals | None = None
        self._audit = AuditLog(settings.data_dir / FILE_NAME)
        self._console = Console(terminal, _prompt_settings(settings))
        self._agent = "SSH_AUTH_SOCK" in env
        self._mode = "local" if env.get("DISPLAY") or env.get("WAYLAND_DISPLAY") else "remote"
        self._sessions = Sessions(
            self._console,
            Executor(settings.exec_timeout, env),
            self._audit,
            max_future=settings.max_future,
            allow_stop_busy=settings.allow_stop_busy,
            stop=self._leave,
            log=self._log if settings.verbose else lambda _: None,
            columns=lambda: 80 if terminal is None else terminal.size.columns,
        )
        self._server = Server(listener.socket, self._sessions, self._log)

    def serve(self) -> signal.Signals | None:
        self._install_signals()
        self._record("started", {"version": __version__, "pid": os.getpid()})
        self._greet()
        self._server.run()
        self._server.drain(DRAIN_SECONDS)
        how = "stop" if self._ending is None else self._ending.name
        unrecorded = self._sessions.refusals.unrecorded
        rest: dict[str, object] = {"unrecorded": unrecorded} if unrecorded else {}
        self._record("ended", {"pid": os.getpid(), "how": how} | rest)
        return self._ending

    def _leave(self) -> None:
        self._server.leave()

    def _install_signals(self) -> None:
        # If another thread gets the signal, or we are about to wait, nothing else ends the wait.
        signal.set_wakeup_fd(self._server.alarm, warn_on_full_buffer=False)
        for number in _ENDING:
            signal.signal(number, self._on_ending)
        signal.signal(signal.SIGCONT, self._on_continue)
        # In the background the terminal then says EIO instead of stopping us.
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)

    def _on_ending(self, number: int, _frame: FrameType | None) -> None:
        self._ending = signal.Signals(number)
        self._server.leave()

    def _on_continue(self, _number: int, _frame: FrameType | None) -> None:
        if self._terminal is not None:
            self._terminal.resume()

    def _log(self, text: str) -> None:
        """A line on standard error, but never into the middle of a question on the same screen."""
        if self._terminal is not None and os.isatty(2):
            self._console.announce([line(text)])
        else:
            log(text)

    def _record(self, event: str, fields: dict[str, object]) -> None:
        try:
            self._audit.append(event, fields)
        except TroubleError as error:
            self._tell(line(f"{error}; privileged commands will be refused", Style.BOLD))

    def _greet(self) -> None:
        settings = self._settings
        if settings.verbose:
            log(f"stringd gate listening on {settings.socket}")
            log(f"mode: {self._mode}")
            log(f"audit log: {settings.data_dir / FILE_NAME}")
            log(f"ssh agent: {'available to unprivileged commands' if self._agent else 'none'}")
        if self._terminal is None:
            log("stringd gate: no terminal here, so every question ends in an error")
            return
        self._tell(
            line(f"stringd gate {__version__}", Style.BOLD),
            line(f"Listening on {settings.socket}"),
            line("Questions appear here: y approves, other keys deny.", Style.DIM),
        )

    def _tell(self, *lines: Line) -> None:
        if self._terminal is None:
            return
        try:
            self._terminal.show(*lines)
        except TroubleError as error:
            log(str(error))


def _prompt_settings(settings: Settings) -> PromptSettings:
    return PromptSettings(
        timeout=settings.prompt_timeout,
        arming=settings.arming,
        bell=settings.bell,
        hook=Hook(settings.notify) if settings.notify.strip() else None,
    )
