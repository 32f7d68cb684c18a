"""`/users`: registering, listing and removing users."""

from typing import TYPE_CHECKING, Final

from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response
from stringd.wire.body import BodyError, JsonObject, parse_object

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.server.log import EventLog

PATH: Final = "/users/"


class UserEndpoints:
    """The three methods of `/users`."""

    def __init__(self, runtime: "Runtime", log: "EventLog") -> None:
        self._runtime = runtime
        self._log = log

    def list(self, _request: HttpRequest) -> HttpResponse:
        return json_response(200, {"users": list(self._runtime.topics.users)})

    async def register(self, request: HttpRequest) -> HttpResponse:
        fields = body_fields(request)
        try:
            user_id = fields.text("id", "user_id")
            if user_id is None:
                raise BodyError("id required")
            home = _home(fields)
            allowed = fields.texts("allowed_paths")
            if not all(path.startswith("/") for path in allowed or ()):
                raise BodyError("allowed_paths must be absolute paths")
        except BodyError as error:
            raise HttpError(400, str(error)) from error
        registration, stale = self._runtime.topics.register(user_id, home, allowed)
        if registration.moved:
            await self._runtime.topics.discard(user_id, stale)
        created = registration.created
        self._log.info("user.register" if created else "user.update", userId=user_id, home=home)
        return json_response(200, {"user_id": user_id, "home": home, "created": created})

    async def delete(self, request: HttpRequest) -> HttpResponse:
        user_id = request.path.removeprefix(PATH)
        deleted = await self._runtime.topics.remove_user(user_id)
        self._log.info("user.delete", userId=user_id, deleted=deleted)
        return json_response(200, {"user_id": user_id, "deleted": deleted})


def body_fields(request: HttpRequest) -> JsonObject:
    """The request's JSON object; what is not an object has no fields."""
    return parse_object(request.typed_body()) or JsonObject({})


def _home(fields: JsonObject) -> str:
    home = fields.text("home")
    if home is None:
        raise BodyError("home required")
    if not home.startswith("/") or "\0" in home:
        raise BodyError("home must be an absolute path")
    return home
