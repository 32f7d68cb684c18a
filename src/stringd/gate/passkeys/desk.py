"""Everything about passkeys in one gate: which count, which question is open, the page."""

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from stringd.gate.audit import AuditLog
from stringd.gate.errors import TroubleError
from stringd.gate.instants import format_instant
from stringd.gate.passkeys.new_passkey import NewPasskey
from stringd.gate.passkeys.open_question import OpenQuestion, OpenQuestions
from stringd.gate.passkeys.page_server import Json, PageServer
from stringd.gate.passkeys.passkey import Passkey, PasskeyError, to_base64url
from stringd.gate.passkeys.ring import PasskeyRing
from stringd.gate.passkeys.verify import (
    MISSING,
    RELYING_PARTY,
    is_available,
    verify_approval,
    verify_registration,
)
from stringd.gate.question import Question

Tell = Callable[[str], None]
_DAY: Final = len("2026-01-01")


class PasskeyDesk:
    """Opens questions to browsers, and takes new passkeys when the terminal asks for one."""

    def __init__(self, path: Path, audit: AuditLog, tell: Tell) -> None:
        self.ring = PasskeyRing(path)
        self._audit = audit
        self._tell = tell
        self._offers = OpenQuestions()
        self._server: PageServer | None = None
        self._registration: NewPasskey | None = None
        self._verifying = threading.Lock()

    @property
    def address(self) -> str:
        """Where browsers can answer; empty while no passkey counts."""
        return "" if self._server is None or not self.ring.counting else f"{self._server.origin}/"

    def start(self, found: tuple[Passkey, ...], *, accepted: bool) -> None:
        """Begin with what the file had. Accepted passkeys that cannot be recorded do not count."""
        if accepted:
            try:
                if not is_available():
                    raise PasskeyError(MISSING)
                names = [{"name": each.name, "key": each.fingerprint} for each in found]
                self._audit.append(
                    "passkeys", {"passkeys": names, "accepted_by": "terminal"}, sync=True
                )
                self._open_page()
            except (PasskeyError, TroubleError) as error:
                self._tell(f"Passkeys do not count: {error}")
                accepted = False
        self.ring.start(found, accepted=accepted)

    @contextmanager
    def open(self, question: Question, seconds: float) -> Iterator[OpenQuestion | None]:
        """Let browsers answer while the terminal asks; None while no passkey counts."""
        if not self.address:
            yield None
            return
        with self._offers.open(question, seconds) as offer:
            yield offer

    @contextmanager
    def registering(self, name: str) -> Iterator[tuple[NewPasskey, str]]:
        """Await a new passkey, and where to make it. Raises `PasskeyError` and `TroubleError`."""
        if not is_available():
            raise PasskeyError(MISSING)
        self.ring.check_free(name)
        server = self._open_page()
        registration = self._registration = NewPasskey(name)
        try:
            yield registration, f"{server.origin}/register/{registration.token}"
        finally:
            if registration.state != "registered":
                registration.end(registered=False)
            registration.made.close()

    def add(self, registration: NewPasskey) -> None:
        """The person confirmed it. Raises `PasskeyError` and `TroubleError`."""
        passkey = registration.passkey
        if passkey is None:
            raise PasskeyError("no browser has made it")
        self._audit.append(
            "passkey_added", {"name": passkey.name, "key": passkey.fingerprint}, sync=True
        )
        try:
            self.ring.add(passkey)
        finally:
            registration.end(registered=passkey in self.ring.counting)

    def revoke(self, passkey: Passkey) -> None:
        """It counts no more. Raises `TroubleError` if that cannot be written down."""
        self.ring.revoke(passkey.name)
        self._audit.append("passkey_revoked", {"name": passkey.name, "key": passkey.fingerprint})

    def close(self) -> None:
        """End the page, if there is one."""
        if self._server is not None:
            self._server.close()
            self._server = None

    def close_unused(self) -> None:
        """End the page if no passkey counts."""
        if not self.ring.counting:
            self.close()

    def question(self, seen: str, seconds: float) -> Json:
        offer = self._offers.wait(seen, seconds)
        if offer is None:
            return {}
        return {
            "number": offer.number,
            "rows": offer.rows,
            "asks": offer.asks,
            "seconds": offer.seconds_left,
            "may_need_terminal": offer.may_need_terminal,
            "challenge": to_base64url(offer.challenge),
            "rp_id": RELYING_PARTY,
            "credentials": [to_base64url(each.id) for each in self.ring.counting],
        }

    def approve(self, body: Json) -> Json:
        number, credential = body.get("number"), body.get("credential")
        if not isinstance(number, str) or not isinstance(credential, dict):
            raise PasskeyError("that is not an answer")
        offer = self._offers.get(number)
        # One at a time: checking takes a while, and the counter must not move meanwhile.
        with self._verifying:
            offer.check()
            try:
                passkey = verify_approval(
                    credential, offer.challenge, self._origin, self.ring.by_id()
                )
                self.ring.use(passkey, lambda: offer.approve(passkey.name))
            except PasskeyError as error:
                offer.failed()
                self._note_refused(offer, error)
                raise
        return {"by": passkey.name}

    def registration(self, token: str) -> Json:
        found = self._awaited(token)
        key = "" if found.passkey is None else found.passkey.fingerprint
        return {
            "name": found.name,
            "state": found.state,
            "key": key,
            "seconds": found.seconds_left,
            "challenge": to_base64url(found.challenge),
            "user_id": to_base64url(found.user_id),
            "rp_id": RELYING_PARTY,
            "known": [to_base64url(each.id) for each in self.ring.counting],
        }

    def register(self, token: str, body: Json) -> Json:
        found = self._awaited(token)
        found.check()
        credential: Any = body.get("credential")
        if not isinstance(credential, dict):
            raise PasskeyError("that is not a passkey")
        added = format_instant(time.time_ns())[:_DAY]
        found.take(
            verify_registration(credential, found.challenge, self._origin, found.name, added)
        )
        return self.registration(token)

    @property
    def _origin(self) -> str:
        return "" if self._server is None else self._server.origin

    def _awaited(self, token: str) -> NewPasskey:
        found = self._registration
        if found is None or found.token != token:
            raise PasskeyError("no such passkey is awaited: start at the gate's terminal")
        return found

    def _open_page(self) -> PageServer:
        if self._server is None:
            self._server = PageServer(self)
        return self._server

    def _note_refused(self, offer: OpenQuestion, error: PasskeyError) -> None:
        self._tell(f"A passkey's answer was refused: {error}")
        try:
            self._audit.append("passkey_refused", {"id": offer.request_id, "message": str(error)})
        except TroubleError:
            return
