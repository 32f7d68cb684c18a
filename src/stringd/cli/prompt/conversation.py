"""A session of commands on a terminal."""

import sys
from collections.abc import Callable
from typing import Final, TypeVar

from stringd.cli.prompt.background_call import BackgroundCall
from stringd.cli.prompt.prompt import Prompt
from stringd.cli.prompt.topic_look import TopicLook
from stringd.client.exec import ExecReply, execute
from stringd.client.http import DaemonConnection, TransportError

T = TypeVar("T")
AGAIN_SECONDS: Final = 0.1
"""After this long a key that no command took is pressed again."""


class Conversation:
    """What a person types for one topic, and the replies."""

    def __init__(
        self, connection: DaemonConnection, user: str, topic: str, cwd: str | None
    ) -> None:
        self._connection = connection
        self._user = user
        self._topic = topic
        self._cwd = cwd
        self._look = TopicLook(connection.port, user, topic, cwd)
        self._prompt = Prompt(self._look, topic)

    def read(self) -> str | None:
        """The next command; None at the end."""
        return self._prompt.read()

    def ask(self, command: str) -> ExecReply | None:
        """Run a command; None when Ctrl-C ended the waiting. Raises `TransportError`.

        In a bash topic Ctrl-C is pressed in the shell, and a second one ends the waiting.
        """
        waiting = BackgroundCall(
            lambda: execute(self._connection, self._user, self._topic, command, self._cwd)
        )
        pressed = not self._topic.startswith("bash:")
        while True:
            try:
                return waiting.result()
            except KeyboardInterrupt:
                # The terminal shows ^C; what follows begins on a line of its own.
                sys.stderr.write("\n")
                if not pressed:
                    pressed = True
                    try:
                        press_until_taken(waiting, self._look.press_ctrl_c)
                        continue
                    except KeyboardInterrupt:
                        sys.stderr.write("\n")
                self._give_up(waiting)
                return None

    def _give_up(self, waiting: BackgroundCall[ExecReply]) -> None:
        self._connection.abort()
        try:
            waiting.result()
        except TransportError:
            pass
        self._connection.close()
        what = "//info says, //kill ends it" if self._topic.startswith("bash:") else "/info says"
        sys.stderr.write(f"string: not waited for; it may still run in {self._topic} ({what})\n")


def press_until_taken(waiting: BackgroundCall[T], press: Callable[[], bool]) -> None:
    """Press a key until a command takes it or the reply is there: its shell may still start."""
    while not waiting.is_over(AGAIN_SECONDS) and not press():
        pass
