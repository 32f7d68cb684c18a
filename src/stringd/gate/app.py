"""`stringd gate` as a process: from start-up to the last way out."""

import os
import signal
import threading
from collections.abc import Mapping
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Final

from stringd import __version__
from stringd.gate.arming import Arming
from stringd.gate.asking import PromptSettings
from stringd.gate.audit import FILE_NAME, HEAD_KEPT, AuditLog
from stringd.gate.console import Console
from stringd.gate.display import Line, Style, fitted, line, render, wrap_exact
from stringd.gate.errors import TroubleError
from stringd.gate.execute import Executor
from stringd.gate.hosts import FILE_NAME as HOSTS_FILE
from stringd.gate.hosts import Hosts
from stringd.gate.listener import Listener
from stringd.gate.machines import Machines
from stringd.gate.notify import Hook
from stringd.gate.policy import StandingPolicy
from stringd.gate.requests import RequestHandler
from stringd.gate.rules import Rule
from stringd.gate.running import RunningCommands
from stringd.gate.server import Server
from stringd.gate.settings import PASSKEYS_FILE, Settings
from stringd.gate.surroundings import key_pressers
from stringd.gate.terminal import Terminal, log

if TYPE_CHECKING:
    from stringd.gate.confirm import PagesOf, Words
    from stringd.gate.passkeys.desk import PasskeyDesk
    from stringd.gate.rule_places import RulesOnDisk

# Enough to answer everyone and to kill what runs; a terminal is not held longer than this.
DRAIN_SECONDS: Final = 5.0
_PR_SET_DUMPABLE: Final = 4
_WELCOME: Final = "Questions appear here: y approves. Enter lists commands, Ctrl-C ends the gate."
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
        self._env = env
        self._terminal = terminal
        self._listener = listener
        self._running = RunningCommands()
        self._ending: signal.Signals | None = None
        self._audit = AuditLog(settings.data_dir / FILE_NAME, self._on_disturbed_log)
        self._console = Console(
            terminal,
            _prompt_settings(settings),
            settings.arming,
            lambda: len(self._running),
            make_desk=self._make_desk,
        )
        self._machines = Machines(
            Hosts(settings.data_dir / HOSTS_FILE),
            settings.exec_timeout,
            env,
            settings.socket.parent,
        )
        self._agent = "SSH_AUTH_SOCK" in env
        self._mode = "local" if env.get("DISPLAY") or env.get("WAYLAND_DISPLAY") else "remote"
        self._policy = StandingPolicy()
        self._handler = RequestHandler(
            self._console,
            Executor(settings.exec_timeout, env),
            self._audit,
            max_future=settings.max_future,
            allow_stop_busy=settings.allow_stop_busy,
            stop=self._leave,
            log=self._log if settings.verbose else lambda _: None,
            columns=lambda: 80 if terminal is None else terminal.size.columns,
            env=env,
            running=self._running,
            machines=self._machines,
            policy=self._policy,
            board=self._console.board,
            page=lambda: self._console.page,
        )
        self._server = Server(listener.socket, self._handler, self._log, self._look_around)

    def serve(self) -> signal.Signals | None:
        _refuse_tracing()
        self._install_signals()
        started = {"version": __version__, "pid": os.getpid(), HEAD_KEPT: True}
        self._record("started", started)
        self._policy.rules = self._read_rules()
        self._read_passkeys()
        self._greet()
        keys = threading.Thread(
            target=self._console.watch_keys, args=(self._server.stopping,), daemon=True, name="keys"
        )
        keys.start()
        self._server.run()
        self._server.drain(DRAIN_SECONDS)
        self._machines.close()
        if self._console.passkeys is not None:
            self._console.passkeys.close()
        how = "stop" if self._ending is None else self._ending.name
        rest: dict[str, object] = {}
        if unrecorded := self._handler.unrecorded:
            rest["unrecorded"] = unrecorded
        if (peer := self._handler.stopped_by) is not None:
            rest["stopped_by"] = {"pid": peer.pid, "exe": peer.exe}
        self._record("ended", {"pid": os.getpid(), "how": how} | rest)
        return self._ending

    def _read_rules(self) -> tuple[Rule, ...]:
        """The rules until we end: they are read once, and never while callers are served."""
        settings = self._settings
        if not settings.root_rules.exists() and not settings.rules.exists():
            return ()
        from stringd.gate.standing_rules import standing_rules  # most gates have no rules

        return standing_rules(
            settings.root_rules, settings.rules, self._audit, self._accept, self._tell_whole
        )

    def _read_passkeys(self) -> None:
        """The passkeys of earlier gates: they count once the person has accepted them here."""
        if self._terminal is None or not self._passkey_file.exists():
            return
        # Most gates have none.
        from stringd.gate.passkeys.passkey import PasskeyError
        from stringd.gate.passkeys.ring import read_passkeys
        from stringd.gate.passkeys.screen import ACCEPT, accept_pages

        try:
            found = read_passkeys(self._passkey_file)
        except PasskeyError as error:
            self._tell_whole(str(error))
            return
        if found:
            accepted = self._confirm(lambda size: accept_pages(found, size), ACCEPT)
            self._console.passkeys = self._make_desk()
            self._console.passkeys.start(found, accepted=accepted)

    @property
    def _passkey_file(self) -> Path:
        return self._settings.data_dir / PASSKEYS_FILE

    def _make_desk(self) -> "PasskeyDesk":
        from stringd.gate.passkeys.desk import PasskeyDesk  # see above

        return PasskeyDesk(self._passkey_file, self._audit, self._announce)

    def _tell_whole(self, text: str) -> None:
        """Say something of which no part may be cut off."""
        if self._terminal is None:
            log(f"stringd gate: {text}")
            return
        rows = wrap_exact(render(text), self._terminal.size.columns)
        self._console.announce([line(row, Style.BOLD) for row in rows])

    def _accept(self, rules: "RulesOnDisk", before: str | None) -> bool:
        from stringd.gate.acceptance import WORDS, acceptance_pages  # see above

        return self._confirm(lambda size: acceptance_pages(rules, before, size), WORDS)

    def _confirm(self, pages_of: "PagesOf", words: "Words") -> bool:
        """Whether the person at the terminal says yes to what is shown there."""
        if self._terminal is None:
            return False
        from stringd.gate.confirm import Confirmation  # see above

        arming = Arming(self._settings.arming)
        timeout, is_ending = self._settings.prompt_timeout, lambda: self._server.is_leaving
        try:
            return Confirmation(self._terminal, timeout, is_ending, arming).ask(pages_of, words)
        except TroubleError as error:
            log(str(error))
            return False

    def _leave(self) -> None:
        self._server.leave()

    def _install_signals(self) -> None:
        # If another thread gets the signal, or we are about to wait, nothing else ends the wait.
        signal.set_wakeup_fd(self._server.alarm, warn_on_full_buffer=False)
        for number in _ENDING:
            signal.signal(number, self._on_ending)
        signal.signal(signal.SIGCONT, self._on_continue)
        signal.signal(signal.SIGWINCH, lambda *_: self._console.resized())
        # In the background the terminal then says EIO instead of stopping us.
        signal.signal(signal.SIGTTIN, signal.SIG_IGN)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)

    def _on_ending(self, number: int, _frame: FrameType | None) -> None:
        if number == signal.SIGINT and not self._console.is_asking and self._running.abort():
            # The first Ctrl-C is for what runs; without anything running it is for the gate.
            # Its echo is left alone in its line.
            self._console.announce([line("")])
            return
        self._ending = signal.Signals(number)
        self._server.leave()

    def _look_around(self) -> None:
        """Notice what went missing while we were not looking."""
        self._audit.check()
        if self._terminal is not None and self._terminal.is_gone:
            # Nobody can answer here any more, and a socket would keep callers waiting.
            self._ending = signal.SIGHUP
            self._server.leave()
        elif not self._listener.is_in_place:
            self._listen_again()

    def _listen_again(self) -> None:
        path = self._settings.socket
        try:
            self._server.listen_on(self._listener.bind_again())
        except TroubleError as error:
            self._record("failed", {"message": f"socket lost: {error}"})
            self._announce(f"Callers cannot reach this gate any more: {error}. It ends.")
            self._server.leave()
            return
        self._record("disturbed", {"message": "the socket file was removed"})
        self._announce(f"Somebody removed the socket; listening again on {path}")

    def _on_disturbed_log(self, what: str) -> None:
        self._announce(f"Warning: {what}. `stringd gate audit verify` fails from now on.")

    def _announce(self, text: str) -> None:
        if self._terminal is None:
            log(f"stringd gate: {text}")
        else:
            columns = self._terminal.size.columns
            self._console.announce([line(fitted(text, columns), Style.BOLD)])

    def _on_continue(self, _number: int, _frame: FrameType | None) -> None:
        if self._terminal is not None:
            self._terminal.resume()

    def _log(self, text: str) -> None:
        """A line on standard error, but never into the middle of a question on the same screen."""
        if self._terminal is not None and os.isatty(2):
            self._console.announce([line(fitted(text, self._terminal.size.columns))])
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
            line(f"Audit log    {settings.data_dir / FILE_NAME}, {_counted(self._audit.head.seq)}"),
            *self._warnings(),
            *([line(f"By passkey   {page}")] if (page := self._console.page) else []),
            line(_WELCOME, Style.DIM),
        )

    def _warnings(self) -> list[Line]:
        ways = list(key_pressers(self._env))
        if not ways:
            return []
        opening = "Your other programs could press keys here:"
        return [line(opening, Style.BOLD), *(line(f"  by {way}") for way in ways)]

    def _tell(self, *lines: Line) -> None:
        if self._terminal is None:
            return
        try:
            self._terminal.show(*lines)
        except TroubleError as error:
            log(str(error))


def _refuse_tracing() -> None:
    """Other programs of this account may not attach to us and press keys from within."""
    import ctypes

    prctl = getattr(ctypes.CDLL(None), "prctl", None)
    if prctl is not None:
        prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)


def _counted(records: int) -> str:
    return "1 record" if records == 1 else f"{records} records"


def _prompt_settings(settings: Settings) -> PromptSettings:
    return PromptSettings(
        timeout=settings.prompt_timeout,
        bell=settings.bell,
        hook=Hook(settings.notify) if settings.notify.strip() else None,
    )
