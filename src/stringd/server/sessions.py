"""`/sessions`: listing, creating and closing topics."""

from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response
from stringd.server.users import body_fields
from stringd.wire.body import BodyError
from stringd.wire.topic import InvalidTopicError, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.runtime.topics.session import Slot
    from stringd.server.log import EventLog

PATH: Final = "/sessions/"


class SessionEndpoints:
    """The three methods of `/sessions`."""

    def __init__(self, runtime: "Runtime", log: "EventLog") -> None:
        self._runtime = runtime
        self._log = log

    def list(self, request: HttpRequest) -> HttpResponse:
        query = parse_qs(request.query.decode("utf-8", "replace"))
        named = query.get("user_id") or query.get("agent_id") or [""]
        wanted = named[0].strip() or None
        slots = self._runtime.topics.sessions(wanted)
        return json_response(200, {"sessions": [_item(slot) for slot in slots]})

    async def create(self, request: HttpRequest) -> HttpResponse:
        fields = body_fields(request)
        try:
            user_id = fields.text("user_id", "agent_id")
            if user_id is None:
                raise BodyError("user_id required")
            if self._runtime.topics.users.get(user_id) is None:
                raise HttpError(401, f"Unknown user: {user_id}")
            topic = parse_topic(fields.text("topic"))
        except (BodyError, InvalidTopicError) as error:
            raise HttpError(400, str(error)) from error
        slot = self._runtime.topics.slot(user_id, topic)
        created = slot.session is None
        writing = self._runtime.topics.save(self._runtime.topics.session(slot))
        if writing is not None:
            await writing
        if created:
            self._log.info("session.create", userId=user_id, topic=topic)
        body = {"user_id": user_id, "topic": topic.canonical, "topic_type": topic.type}
        return json_response(200, {**body, "created": created})

    async def delete(self, request: HttpRequest) -> HttpResponse:
        user_id, slash, raw = request.path.removeprefix(PATH).partition("/")
        if not slash or not request.path.startswith(PATH):
            raise HttpError(400, "Expected /sessions/:user_id/:topic")
        try:
            topic = parse_topic(raw)
        except InvalidTopicError:
            return json_response(200, {"user_id": user_id, "topic": raw, "deleted": False})
        session = await self._runtime.topics.forget(user_id, topic)
        if session is not None:
            await session.release()
            self._log.info("session.delete", userId=user_id, topic=topic)
        body = {"user_id": user_id, "topic": topic.canonical, "deleted": session is not None}
        return json_response(200, body)


def _item(slot: "Slot") -> dict[str, object]:
    meta = slot.session.meta() if slot.session else None
    item: dict[str, object] = {
        "user_id": slot.user_id,
        "topic": slot.topic.canonical,
        "topic_type": slot.topic.type,
        "executing": slot.queue.busy,
        "queue_length": slot.queue.length,
        "doc": None,
    }
    if meta is not None:
        block = meta.current_block
        item["doc"] = {"uri": meta.uri, "title": meta.title, "current_block": block}
    return item
