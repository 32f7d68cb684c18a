"""`POST /webhook/<token>`: a program of this machine leaves an event in a topic.

`GET /users/<id>/webhook` says where, `POST` to the same makes a new address. `?topic=` names the
topic, by default `file:main`.
"""

import asyncio
from typing import TYPE_CHECKING, Final
from urllib.parse import parse_qs

from stringd.runtime.inbox import MAX_EVENT_BYTES, MAX_EVENTS, InboxFullError
from stringd.server.http.messages import HttpError, HttpRequest, HttpResponse, json_response
from stringd.wire.feed import InboxReceived
from stringd.wire.topic import InvalidTopicError, parse_topic

if TYPE_CHECKING:
    from stringd.runtime.runtime import Runtime
    from stringd.server.feed.ring import Feed
    from stringd.server.log import EventLog
    from stringd.server.users import Noun

PATH: Final = "/webhook/"
SUFFIX: Final = "/webhook"
PREVIEW: Final = 200


class WebhookEndpoints:
    """Addresses of topics, and what is sent there."""

    def __init__(self, runtime: "Runtime", feed: "Feed", log: "EventLog", port: int) -> None:
        self._runtime = runtime
        self._feed = feed
        self._log = log
        self._port = port

    async def address(self, request: HttpRequest, noun: "Noun") -> HttpResponse:
        """Where events for a topic of a user are sent; `POST` makes the old address worthless."""
        user_id = request.path.split("/", 2)[2].removesuffix(SUFFIX)
        if self._runtime.topics.users.get(user_id) is None:
            raise HttpError(404, f"Unknown {noun}: {user_id}")
        query = parse_qs(request.query.decode("utf-8", "replace"))
        try:
            topic = parse_topic(query.get("topic", [""])[0]).canonical
        except InvalidTopicError as error:
            raise HttpError(400, str(error)) from error
        rotate = request.method == "POST"
        inbox = self._runtime.services.inbox
        token = await asyncio.to_thread(inbox.token, user_id, topic, rotate=rotate)
        url = f"http://127.0.0.1:{self._port}{PATH}{token}"
        return json_response(200, {f"{noun}_id": user_id, "topic": topic, "webhook_url": url})

    async def receive(self, request: HttpRequest) -> HttpResponse:
        """Keep an event and tell the feed. Nothing in it is run."""
        inbox = self._runtime.services.inbox
        owner = await asyncio.to_thread(inbox.owner, request.path.removeprefix(PATH))
        if owner is None or self._runtime.topics.users.get(owner.user) is None:
            raise HttpError(401, "Unknown webhook token")
        if len(request.body) > MAX_EVENT_BYTES:
            raise HttpError(413, f"Webhook body exceeds {MAX_EVENT_BYTES} bytes")
        text = request.body.decode("utf-8", "replace").strip()
        if not text:
            raise HttpError(400, "Webhook body must be non-empty text")
        try:
            event = await asyncio.to_thread(inbox.add, owner, text)
        except InboxFullError as error:
            message = f"{MAX_EVENTS} events wait to be read; /events.clear --all removes them."
            raise HttpError(429, "INBOX_FULL", message) from error
        self._log.info("webhook", userId=owner.user, topic=owner.topic, eventId=event.id)
        self._feed.publish(
            InboxReceived(
                user=owner.user, topic=owner.topic, event_id=event.id, text=text[:PREVIEW]
            )
        )
        body = {"ok": True, "user_id": owner.user, "agent_id": owner.user}
        return json_response(202, {**body, "topic": owner.topic, "event_id": event.id})
