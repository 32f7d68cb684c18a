"""`String`: the blocking client of the daemon.

with String(autostart=True) as string:
    print(string.exec("file:main", "/open README.md").unwrap())
"""

import os
from types import TracebackType
from typing import Self

import stringd.client.calls as calls
from stringd.client.base import BaseClient, nobody_answers
from stringd.client.calls import ClientCall
from stringd.client.daemon import healthy, start
from stringd.client.errors import RequestRefusedError
from stringd.client.http import (
    BrokenOffError,
    DaemonConnection,
    HttpReply,
    StrangerError,
    TransportError,
)
from stringd.client.identity import make_home
from stringd.client.values import ExecResult, Health, RegisteredUser, TopicState


class String(BaseClient[DaemonConnection]):
    """Talks to one daemon as one user. Threads may share it: each call has a connection.

    Nothing is sent twice, whatever happens: repeating a command is the caller's decision.
    Files under the working directory are vouched for, as the `string` command does; `cwd` names
    another directory, and with `send_cwd=False` none is sent. Shells that it starts have this
    program's `PATH`, `HOME` and the like, never its tokens; `send_cwd=False` keeps these too.
    """

    def __enter__(self) -> Self:
        self.connect()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def connect(self) -> None:
        """Find the daemon, start it if asked to, and make sure the user exists.

        The first command does this by itself. Raises `TransportError`, `RequestRefusedError`.
        """
        if self._known:
            return
        if not healthy(self.port):
            if not self._autostart:
                raise TransportError(nobody_answers(self.port))
            if not start(self.port):
                raise TransportError(f"failed to start stringd on port {self.port}")
        self._ensure_user()
        self._known = True

    def exec(self, topic: str, cmd: str, *, request_id: str | None = None) -> ExecResult:
        """Run one command and wait for its answer. Raises `TransportError` only."""
        try:
            self.connect()
        except RequestRefusedError as error:
            return calls.shut_out(error)
        call = calls.exec_call(
            self.user, topic, cmd, request_id, self._directory(), self._environment()
        )
        try:
            return calls.parse_exec(self._send(call))
        except BrokenOffError:
            return calls.broken_off()

    def chanflow(self, text: str) -> str:
        """Run every string block of a text; the reply blocks, in order."""
        self.connect()
        call = calls.chanflow_call(self.user, text, self._directory(), self._environment())
        return calls.parse_text(self._send(call))

    def topics(self, *, all_users: bool = False) -> list[TopicState]:
        """The open topics, of this user or of everybody."""
        call = calls.sessions_call(None if all_users else self.user)
        return calls.parse_topics(self._send(call))

    def open_topic(self, topic: str) -> bool:
        """Make sure a topic exists; True when it is new. Raises `RequestRefusedError`."""
        self.connect()
        fields = calls.parse_json(self._send(calls.open_topic_call(self.user, topic)))
        return fields["created"] is True

    def close_topic(self, topic: str) -> bool:
        """Close a topic and what runs in it; False when there was none."""
        fields = calls.parse_json(self._send(calls.close_topic_call(self.user, topic)))
        return fields["deleted"] is True

    def users(self) -> list[RegisteredUser]:
        """Every registered user."""
        return calls.parse_users(self._send(ClientCall("GET", "/users")))

    def register_user(
        self, user: str, home: str | os.PathLike[str], allowed_paths: list[str] | None = None
    ) -> bool:
        """Add or update a user; True when it is new. Raises `RequestRefusedError`."""
        call = calls.register_call(user, os.fspath(home), allowed_paths)
        return calls.parse_json(self._send(call))["created"] is True

    def delete_user(self, user: str) -> bool:
        """Remove a user and its topics, not its files; False when there was none."""
        return calls.parse_json(self._send(calls.delete_user_call(user)))["deleted"] is True

    def ping(self) -> bool:
        """Whether a daemon answers. Never raises."""
        try:
            return healthy(self.port)
        except StrangerError:
            return False

    def health(self) -> Health:
        """What the daemon says about itself. Raises `TransportError`, `RequestRefusedError`."""
        return calls.parse_health(self._send(ClientCall("GET", "/health")))

    def shutdown(self) -> None:
        """Ask the daemon to stop; it answers first."""
        calls.parse_json(self._send(ClientCall("POST", "/shutdown", b"{}")))
        self.close()
        self._known = False

    def _ensure_user(self) -> None:
        who = self._who
        # Without a chosen home, an existing user keeps the one it has.
        if not who.home_chosen and any(user.id == who.user for user in self.users()):
            return
        make_home(who.home)
        calls.parse_json(self._send(calls.register_call(who.user, who.home)))

    def _send(self, call: ClientCall) -> HttpReply:
        try:
            # Not looked at first: another thread may take the last one in between.
            connection = self._idle.pop()
        except IndexError:
            connection = DaemonConnection(self.port, self._timeout)
        reply = connection.request(call.method, call.path, call.body, call.headers)
        self._idle.append(connection)
        return reply
