"""Passkeys at the terminal: listed, added and revoked there, and nowhere else."""

import time
from collections.abc import Callable, Mapping
from typing import Final

from stringd.gate.arming import Arming
from stringd.gate.confirm import Confirmation, Words
from stringd.gate.display import Line, Style, fitted, labelled, line
from stringd.gate.errors import RefusalError
from stringd.gate.keys import KeyReader
from stringd.gate.note import NoteLine
from stringd.gate.passkeys.desk import PasskeyDesk
from stringd.gate.passkeys.new_passkey import NewPasskey
from stringd.gate.passkeys.passkey import Passkey, check_name
from stringd.gate.question import ROWS_BELOW, Size
from stringd.gate.terminal import Terminal
from stringd.gate.watch import READABLE

Wait = Callable[[Mapping[int, int], float], Mapping[int, int]]

HEADER: Final = "━━━ Passkeys ━━━ stringd gate ━━━"
NONE_YET: Final = "None is registered: questions are answered at this terminal only."
ACCEPT: Final = Words(
    "Let these passkeys approve until this gate ends? [y/N]",
    "y they count   any other key: only this terminal answers",
)
REGISTER: Final = Words(
    "Register this passkey? [y/N]", "y it may approve from now on   any other key: no"
)
_REVOKE_KEYS: Final = "y revoke it   any other key: keep it"
_KEYS: Final = "a add one   1-9 revoke one   q back"
_LEAVING: Final = (b"q", b"\x1b", b"\r", b"\n", b"p")
_BY_NAME: Final = (
    "It has to be localhost: browsers use passkeys by name, so a page at 127.0.0.1 cannot."
)
_REFRESH_SECONDS: Final = 1.0
_CONFIRM_SECONDS: Final = 60


def accept_pages(passkeys: tuple[Passkey, ...], size: Size) -> list[list[Line]]:
    """What the file has, in pages: at a start each of them is accepted or none."""
    rows = [
        line(HEADER, Style.BOLD),
        line("Any program of yours could have written these: compare them."[: size.columns]),
        *(row for each in passkeys for row in _passkey_rows("  ", each, size.columns)),
    ]
    return _paged(rows, size)


def _passkey_rows(opening: str, passkey: Passkey, columns: int) -> list[Line]:
    rows = labelled(opening, f"{passkey.name}, added {passkey.added}", columns, Style.BOLD)
    return [*rows, *labelled(" " * (len(opening) + 2), passkey.fingerprint, columns)]


def _paged(rows: list[Line], size: Size) -> list[list[Line]]:
    height = max(size.rows - ROWS_BELOW, 3)
    return [rows[start : start + height] for start in range(0, len(rows), height)]


class PasskeyScreen:
    """Shows the list until the person has seen enough.

    `wait` waits for descriptors, `is_over` says that the gate ends. Only while the terminal is raw
    and nobody else draws on it.
    """

    def __init__(
        self,
        terminal: Terminal,
        desk: PasskeyDesk,
        arming: Arming,
        wait: Wait,
        is_over: Callable[[], bool],
    ) -> None:
        self._terminal = terminal
        self._desk = desk
        self._arming = arming
        self._wait = wait
        self._is_over = is_over
        self._reader = KeyReader()
        self._message = ""

    def run(self) -> None:
        """Raises `TroubleError` when the terminal fails."""
        self._terminal.forget_screen()
        try:
            while not self._is_over():
                self._draw(self._list())
                for press in self._reader.feed(self._read(), time.monotonic()) or self._flushed():
                    self._message = ""
                    if press in _LEAVING:
                        return
                    self._take(press)
        finally:
            self._desk.close_unused()

    def _take(self, press: bytes) -> None:
        listed = self._listed()
        try:
            if press == b"a":
                self._add()
            elif press.isdigit() and 1 <= int(press) <= len(listed):
                self._revoke(listed[int(press) - 1])
        except RefusalError as error:
            self._message = str(error)
        self._terminal.forget_screen()

    def _listed(self) -> tuple[Passkey, ...]:
        return self._desk.ring.counting + self._desk.ring.declined

    def _add(self) -> None:
        name = self._type_name()
        if not name:
            return
        check_name(name)
        with self._desk.registering(name) as (registration, address):
            self._await(registration, address)
            passkey = registration.passkey
            if passkey is None:
                self._message = "No browser made a passkey; nothing was registered."
                return
            if not self._confirm(passkey, REGISTER, "A browser made this passkey:"):
                self._message = f"{name} was not registered."
                return
            self._desk.add(registration)
        self._message = f"{name} may approve from now on."

    def _type_name(self) -> str:
        note = NoteLine()
        while not note.is_done and not self._is_over():
            rows = [*self._list()[:-2], line(""), line(f"Name of the new passkey: {note.text}")]
            self._draw(rows)
            note.feed(self._read())
        return note.text.strip()

    def _await(self, registration: NewPasskey, address: str) -> None:
        """Until a browser made it, the person gave up, or time was up."""
        while not registration.made.is_set and registration.seconds_left and not self._is_over():
            columns = self._terminal.size.columns
            self._draw(
                [
                    line(f"━━━ New passkey: {registration.name} ━━━ stringd gate ━━━", Style.BOLD),
                    line("Open this in a browser of this machine:"[:columns]),
                    *labelled("  ", address, columns, Style.BOLD),
                    *labelled("", _BY_NAME, columns),
                    line(""),
                    line(f"{round(registration.seconds_left)} s left   Esc gives up", Style.DIM),
                ]
            )
            data = self._read(registration.made.fileno())
            if b"\x1b" in (self._reader.feed(data, time.monotonic()) or self._flushed()):
                return

    def _revoke(self, passkey: Passkey) -> None:
        words = Words(f"Revoke {passkey.name}? [y/N]", _REVOKE_KEYS)
        if self._confirm(passkey, words, "It may approve nothing any more, here or later:"):
            self._desk.revoke(passkey)
            self._message = f"{passkey.name} is revoked."

    def _confirm(self, passkey: Passkey, words: Words, opening: str) -> bool:
        def pages(size: Size) -> list[list[Line]]:
            head = [line(HEADER, Style.BOLD), line(opening[: size.columns])]
            return _paged([*head, *_passkey_rows("  ", passkey, size.columns)], size)

        self._terminal.forget_screen()
        asking = Confirmation(self._terminal, _CONFIRM_SECONDS, self._is_over, self._arming)
        return asking.ask_in_raw(pages, words)

    def _list(self) -> list[Line]:
        columns = self._terminal.size.columns
        rows = [line(HEADER, Style.BOLD)]
        counting = self._desk.ring.counting
        if address := self._desk.address:
            rows.append(line(f"Browsers of this machine answer at {address}"[:columns]))
        for digit, each in enumerate(self._listed(), start=1):
            rows += _passkey_rows(f" {digit}  ", each, columns)
            if each not in counting:
                rows.append(line("      does not count: not accepted at the start"[:columns]))
        if not self._listed():
            rows.append(line(NONE_YET[:columns]))
        return [
            *rows,
            line(""),
            line(fitted(self._message, columns), Style.BOLD),
            line(_KEYS[:columns], Style.DIM),
        ]

    def _draw(self, rows: list[Line]) -> None:
        self._terminal.draw(rows, whole=False)

    def _read(self, *others: int) -> bytes:
        """What is typed within a moment; none of it decides anything here or later."""
        wanted = dict.fromkeys((self._terminal.keys, *others), READABLE)
        due, now = self._reader.due(), time.monotonic()
        patience = _REFRESH_SECONDS if due is None else min(_REFRESH_SECONDS, max(0.0, due - now))
        if self._terminal.keys not in self._wait(wanted, patience):
            return b""
        # At the end of input there is nobody to show anything to.
        data = self._terminal.read() or b"q"
        self._arming.used_elsewhere(data, time.monotonic())
        return data

    def _flushed(self) -> list[bytes]:
        return self._reader.flush(time.monotonic())
