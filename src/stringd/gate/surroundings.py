"""What around the gate could press its keys, so that the person knows when it starts."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

_TIOCSTI: Final = "/proc/sys/dev/tty/legacy_tiocsti"
_PTRACE: Final = "/proc/sys/kernel/yama/ptrace_scope"


def key_pressers(env: Mapping[str, str], root: str = "") -> Iterator[str]:
    """The ways in which another program of this account could press keys here."""
    if env.get("TMUX"):
        yield "tmux send-keys"
    if env.get("STY"):
        yield "screen -X stuff"
    if _read(root + _TIOCSTI) == "1":
        yield "TIOCSTI (sysctl dev.tty.legacy_tiocsti=0 ends that)"
    if _read(root + _PTRACE) in ("", "0"):
        yield "ptrace of the terminal (sysctl kernel.yama.ptrace_scope=1 ends that)"


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
