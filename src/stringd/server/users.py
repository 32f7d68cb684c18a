"""`/users`: registering, listing and removing users. Later clients call them `/agents`."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import UNSET, UnsetType

from stringd.client import daemon
from stringd.runtime.topics.users import Preferences, User
from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response
from stringd.server.pages import speaker_of
from stringd.system.files import make_private_directory
from stringd.wire.body import BodyError, JsonObject, parse_object

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.server.log import EventLog

Noun = Literal["user", "agent"]


class UserEndpoints:
    """The three methods of `/users`, or of `/agents` in the words of later clients."""

    def __init__(self, runtime: "Runtime", log: "EventLog", noun: Noun = "user") -> None:
        self._runtime = runtime
        self._log = log
        self.noun = noun

    @property
    def path(self) -> str:
        """What one of them is below."""
        return f"/{self.noun}s/"

    def list(self, _request: HttpRequest) -> HttpResponse:
        return json_response(200, {f"{self.noun}s": list(self._runtime.topics.users)})

    async def register(self, request: HttpRequest) -> HttpResponse:
        fields = body_fields(request)
        try:
            user_id = fields.text("id", "user_id", "agent_id")
            if user_id is None:
                raise BodyError("id required")
            home = self._home(fields, user_id)
            allowed = fields.texts("allowed_paths")
            if not all(path.startswith("/") for path in allowed or ()):
                raise BodyError("allowed_paths must be absolute paths")
            wants = Preferences(_choice(fields, "diffs"), _choice(fields, "overwrite_guard"))
        except BodyError as error:
            raise HttpError(400, str(error)) from error
        known = self._runtime.topics.users.get(user_id)
        if known is not None and _widens(known, home, allowed, wants):
            await _require_owner(request, user_id)
        registration, stale = self._runtime.topics.register(user_id, home, allowed, wants)
        if registration.moved:
            await self._runtime.topics.discard(user_id, stale)
        created = registration.created
        self._log.info("user.register" if created else "user.update", userId=user_id, home=home)
        body = {f"{self.noun}_id": user_id, "home": home, "created": created}
        return json_response(200, body)

    async def delete(self, request: HttpRequest) -> HttpResponse:
        user_id = request.path.removeprefix(self.path)
        deleted = await self._runtime.topics.remove_user(user_id)
        await asyncio.to_thread(self._runtime.services.inbox.forget, user_id)
        self._log.info("user.delete", userId=user_id, deleted=deleted)
        return json_response(200, {f"{self.noun}_id": user_id, "deleted": deleted})

    def _home(self, fields: JsonObject, user_id: str) -> str:
        """The home a user is registered with. Raises `BodyError`.

        Later clients name a user by another field than `id` and leave its home to the daemon.
        """
        home = fields.text("home")
        if home is None and (self.noun == "agent" or fields.text("id") is None):
            known = self._runtime.topics.users.get(user_id)
            return known.home if known is not None else derived_home(user_id)
        if home is None:
            raise BodyError("home required")
        if not home.startswith("/") or "\0" in home:
            raise BodyError("home must be an absolute path")
        return home


def _widens(known: User, home: str, allowed: Sequence[str] | None, wants: Preferences) -> bool:
    """Whether a user would reach or replace more than before."""
    added = set(allowed or ()) - set(known.allowed_paths)
    return home != known.home or bool(added) or wants.overwrite_guard is False


async def _require_owner(request: HttpRequest, user_id: str) -> None:
    """Refuse what the daemon itself started. Raises `HttpError`."""
    speaker = speaker_of(request.peer.visitor, request.headers)
    if speaker is not None and await speaker.outsider() is None:
        raise HttpError(
            403,
            f"Forbidden: what user {user_id} may reach is not changed by a program that this "
            "daemon started. Type it in a terminal of your own.",
        )


def body_fields(request: HttpRequest) -> JsonObject:
    """The request's JSON object; what is not an object has no fields."""
    return parse_object(request.typed_body()) or JsonObject({})


def _choice(fields: JsonObject, name: str) -> bool | UnsetType:
    given = fields.switch(name)
    return UNSET if given is None else given


def derived_home(user_id: str) -> str:
    """The home of a user who names none, made if need be. Raises `BodyError`."""
    if not user_id.isprintable():
        raise BodyError("id may contain only printable characters")
    home = daemon.absolute(daemon.own_directory(user_id))
    try:
        make_private_directory(Path(home))
    except OSError as error:
        raise BodyError(f"home required: cannot make {home} ({error.strerror})") from error
    return home
