"""Tells an absent approver that a question waits: who asks, never what."""

import os
import shlex
import signal
import threading
from contextlib import suppress
from pathlib import Path
from typing import Final

from stringd.gate.processes import ALL_SIGNALS, QUIET, Child
from stringd.gate.resolve import resolve

TITLE: Final = "stringd gate"
HOOK_SECONDS: Final = 10.0
_MAX_NAME: Final = 40


class Hook:
    """The owner's command for a waiting question, run with a title and a sentence added to it."""

    def __init__(self, command: str) -> None:
        self._words = shlex.split(command)
        if "/" in self._words[0]:
            # Written for the directory we were started in, which we leave.
            self._words[0] = str(Path(self._words[0]).absolute())

    def fire(self, session: str) -> None:
        """Start the command and do not wait. A hook that fails changes nothing."""
        words = [*self._words, TITLE, sentence(session)]
        program = resolve(words[0], os.environ.get("PATH", os.defpath))
        if program.path is None:
            return
        # On a machine short of descriptors or threads the question is asked all the same.
        with suppress(OSError, RuntimeError):
            pid = os.posix_spawn(
                program.path,
                words,
                os.environ,
                file_actions=QUIET,
                setsid=True,
                setsigmask=[],
                setsigdef=ALL_SIGNALS,
            )
            child = Child(pid)
            threading.Thread(target=_see_off, args=(child,), daemon=True, name="notify").start()


def _see_off(child: Child) -> None:
    """Wait for a hook, and end one that does not end: each question would leave another behind."""
    if not child.ends_within(HOOK_SECONDS):
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
    # A process that collects every child of its own may have been first.
    with suppress(ChildProcessError):
        child.reap()


def sentence(session: str) -> str:
    """What the notification says. Notifiers may read markup, so the name is kept plain."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in " ._-@") else "?" for c in session)
    return f"A question from {name[:_MAX_NAME] or 'an unnamed session'} is waiting for you."
