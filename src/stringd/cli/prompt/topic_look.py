"""What the daemon says of a topic, for the prompt."""

import json
from typing import Final
from urllib.parse import quote

from stringd.cli.prompt.suggest import TopicWords, topic_words
from stringd.client.exec import execute
from stringd.client.http import DaemonConnection, TransportError

LOOK_SECONDS: Final = 3.0
"""Longer nobody waits for a completion."""


class TopicLook:
    """Looks at one topic, on a connection of its own: the other one may be waiting."""

    def __init__(self, port: int, user: str, topic: str, cwd: str | None) -> None:
        self._cwd = cwd
        self._port = port
        self._user = user
        self._topic = topic
        self._path = f"/topics/{quote(user, safe='')}/{quote(topic, safe='')}"

    def words(self) -> TopicWords:
        """What can be named in the topic now; nothing when the daemon does not say."""
        try:
            with DaemonConnection(self._port, LOOK_SECONDS) as connection:
                reply = connection.request("GET", self._path)
                if reply.status == 404:
                    # Nobody has used the topic yet; asking where it is begins it.
                    info = "//info" if self._topic.startswith("bash:") else "/info"
                    execute(connection, self._user, self._topic, info, self._cwd)
                    reply = connection.request("GET", self._path)
            view = json.loads(reply.body)
        except (TransportError, ValueError):
            return TopicWords()
        return topic_words(view) if reply.status == 200 else TopicWords()

    def press_ctrl_c(self) -> bool:
        """Press Ctrl-C in the shell of a bash topic; whether a command runs there."""
        try:
            with DaemonConnection(self._port, LOOK_SECONDS) as connection:
                reply = connection.request(
                    "POST", f"{self._path}/input", json.dumps({"text": "\x03"}).encode()
                )
            return reply.status == 200 and json.loads(reply.body).get("typed") is True
        except (TransportError, ValueError):
            return False
