"""A terminal of the person's in which a gate can be started: a pane of tmux, or a new window."""

import os
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from stringd.gate.processes import ALL_SIGNALS, QUIET, Child, leave_to_end

# What a program that opens a window wants in front of the command in it.
_WINDOWS: Final[Mapping[str, tuple[str, ...]]] = {
    "x-terminal-emulator": ("-e",),
    "gnome-terminal": ("--",),
    "konsole": ("-e",),
    "xfce4-terminal": ("-x",),
    "kitty": (),
    "alacritty": ("-e",),
    "foot": (),
    "wezterm": ("start", "--"),
    "xterm": ("-e",),
}
_PASSED_ON: Final = ("STRINGD_DATA_DIR", "XDG_RUNTIME_DIR", "HOME")
# A program that could not open a window says so soon.
_REFUSAL_SECONDS: Final = 1.0

Which = Callable[[str], str | None]


def ways(
    command: Sequence[str], env: Mapping[str, str], which: Which = shutil.which
) -> Iterator[list[str]]:
    """The commands that would start this one in a terminal of the person's, best first.

    Words stay words: no shell reads them.
    """
    if env.get("TMUX") and (tmux := which("tmux")):
        # tmux starts it with the environment of its server, which may be another one.
        passed = [
            word for name in _PASSED_ON if name in env for word in ("-e", f"{name}={env[name]}")
        ]
        yield [tmux, "split-window", *passed, "--", *command]
    if not (env.get("DISPLAY") or env.get("WAYLAND_DISPLAY")):
        return
    chosen = env.get("TERMINAL", "")
    for name in dict.fromkeys([chosen, *_WINDOWS]):
        if name and (program := which(name)):
            lead = _WINDOWS.get(os.path.basename(name), ("-e",))  # noqa: PTH119
            yield [program, *lead, *command]


def open_terminal(command: Sequence[str], env: Mapping[str, str]) -> bool:
    """Start a command in the first terminal that can be had; whether there was one."""
    return any(_start(words, env) for words in ways(command, env))


def _start(words: Sequence[str], env: Mapping[str, str]) -> bool:
    try:
        pid = os.posix_spawn(
            words[0],
            list(words),
            env,
            file_actions=QUIET,
            setsid=True,
            setsigmask=[],
            setsigdef=ALL_SIGNALS,
        )
    except OSError:
        return False
    child = Child(pid)
    if child.ends_within(_REFUSAL_SECONDS):
        # tmux and some others end at once: the window is another program's.
        return child.reap() == 0
    leave_to_end(child)
    return True
