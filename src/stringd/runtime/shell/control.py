"""The side channel to a shell: commands go in, statuses come out, and no output passes.

The shell is an interactive bash that reads its commands from a socket instead of the terminal.
Each command is two lines. The first evaluates the text with the terminal as its input and output,
so nothing in the text can reach the socket, and unfinished quotes end with it. The second reports
status and directory; it is read when the shell is back at its prompt, by whichever way: after an
error that drops the rest of a line, after an interrupt, after `return`. Bash's own standard output
and error lead nowhere, so prompts, traces and traps of these lines show nowhere.

The evaluation is negated, because for `set -e` and ERR traps a failure counts where it happens and
not once more where the text ends; `PIPESTATUS` keeps the status nevertheless.
"""

import asyncio
import socket
from collections.abc import Callable
from typing import Final, NamedTuple

from stringd.runtime.shell.errors import UnusableInputError

SETUP: Final = (
    "PS1= PS2= PS0=; \\builtin unset MAILCHECK PROMPT_COMMAND; "
    "\\builtin set +o history +H; \\builtin history -c\n"
)
# `!` would start a history reference should someone switch those on.
_ESCAPES: Final = str.maketrans({"\\": "\\\\", "'": "\\'", "\n": "\\n", "!": "\\x21"})
_FIELDS: Final = 3
_LONGEST_REPORT: Final = 8192


class ShellReport(NamedTuple):
    """The shell is back at its prompt after command `number`."""

    number: int
    status: int
    directory: str


def command_lines(number: int, text: str, terminal: str, status: int = 0) -> bytes:
    """The two lines that run `text`, which finds `status` in `$?`.

    Raises `UnusableInputError` for text no shell can hold.
    """
    if "\0" in text:
        raise UnusableInputError("Input contains a NUL character, which a shell cannot take.")
    line = f"! \\builtin eval $'{text.translate(_ESCAPES)}' 0<>{terminal} 1>&0 2>&0\n"
    return (_recall(status) + line).encode(errors="replace") + report_line(number)


DRAW: Final = b"_STRINGD_TERM=${TERM-}\nTERM=xterm-256color\n"
"""Lets programs draw on a screen, until `PLAIN`."""
PLAIN: Final = b"TERM=$_STRINGD_TERM\n\\builtin unset _STRINGD_TERM\n"


def report_line(number: int) -> bytes:
    """Asks for a report as soon as the shell is at its prompt."""
    return f'\\builtin printf "%s\\0" {number} "$PIPESTATUS" "${{PWD-}}" >&0\n'.encode()


def rescue_line(number: int) -> bytes:
    """Asks again, under the negative number, after restoring the means to answer.

    A function called `builtin` takes their place, `enable -n` takes them away.
    """
    return b"\\unset -f builtin; \\builtin enable printf eval; " + report_line(-number)


def _recall(status: int) -> str:
    """Sets `$?`, which our own lines have changed; neither `set -e` nor an ERR trap minds.

    A function that removes itself is a hundred times cheaper than a subshell.
    """
    if status == 0:
        return ""
    body = f"\\builtin unset -f _stringd; \\builtin return {status}"
    return f"_stringd() {{ {body}; }}; _stringd && \\builtin :; "


class ReportReader:
    """Bytes from the shell in, reports out."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> list[ShellReport]:
        fields = (self._buffer + data).split(b"\0")
        reports: list[ShellReport] = []
        while len(fields) > _FIELDS:
            number, status, directory, *fields = fields
            reports.append(
                ShellReport(int(number), int(status), directory.decode(errors="surrogateescape"))
            )
        self._buffer = b"\0".join(fields)
        return reports


class Control:
    """Our end of the socket. `lost` is called when no shell holds the other end any more."""

    def __init__(
        self,
        ours: socket.socket,
        on_report: Callable[[ShellReport], None],
        lost: Callable[[], None],
    ) -> None:
        self._socket = ours
        self._socket.setblocking(False)
        self._on_report = on_report
        self._lost = lost
        self._reader = ReportReader()
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(ours.fileno(), self._readable)

    async def send(self, lines: bytes) -> None:
        """Hand lines to the shell; a shell that is gone is noticed elsewhere."""
        try:
            sent = self._socket.send(lines)
            if sent < len(lines):
                await self._loop.sock_sendall(self._socket, lines[sent:])
        except (BlockingIOError, InterruptedError):
            await self._loop.sock_sendall(self._socket, lines)
        except OSError:
            return

    def close(self) -> None:
        if self._socket.fileno() >= 0:
            self._loop.remove_reader(self._socket.fileno())
            self._socket.close()

    def _readable(self) -> None:
        try:
            data = self._socket.recv(_LONGEST_REPORT)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if data:
            for report in self._reader.feed(data):
                self._on_report(report)
        else:
            self._loop.remove_reader(self._socket.fileno())
            self._lost()
