"""`/open --tab <name> <target>`: a document in a topic of its own."""

from collections.abc import Awaitable, Callable

from stringd.runtime.errors import CommandError
from stringd.runtime.pages.target import WebAddress, destination
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import is_web
from stringd.runtime.topics.session import Slot
from stringd.wire.result import Result
from stringd.wire.topic import InvalidTopicError, Topic, parse_topic

Open = Callable[[Call], Result | Awaitable[Result]]

_USAGE = "Usage: /open --tab <topic> <target>"


async def open_in_tab(call: Call, text: str, open_: Open) -> Result:
    """Open a target in a new topic that starts with this one's variables and no history."""
    name, _, target = text.strip().partition(" ")
    if is_web(name) and not target:
        name, target = _next_tab(call), name
    if not target.strip():
        raise CommandError("INVALID_TARGET", _USAGE)
    topic, address = _topic(name), _absolute(call, target.strip())
    slot = _fresh_slot(call, topic)
    slot.queue.take_turn(0)
    try:
        session = call.topics.session(slot)
        session.variables.update(call.session.variables)
        session.variable_owners.update(call.session.variable_owners)
        line = call.line._replace(argument=address)
        outcome = open_(call._replace(session=session, line=line))
        result = outcome if isinstance(outcome, Result) else await outcome
        call.topics.save(session)
    except CommandError:
        call.topics.forget(slot.user_id, slot.topic)
        raise
    finally:
        call.topics.leave(slot)
    return Result.page(f"{result.message}\nTopic: {slot.topic}", result.content or "")


def _next_tab(call: Call) -> str:
    taken = {slot.topic.canonical for slot in call.topics.sessions(call.session.user.id)}
    number = 1
    while f"web:tab_{number}" in taken:
        number += 1
    return f"web:tab_{number}"


def _topic(name: str) -> Topic:
    try:
        topic = parse_topic(name)
    except InvalidTopicError as error:
        raise CommandError("INVALID_TARGET", f"{error}\n{_USAGE}") from error
    if topic.type == "bash":
        raise CommandError("INVALID_TARGET", f"A shell opens no documents: {topic}\n{_USAGE}")
    return topic


def _fresh_slot(call: Call, topic: Topic) -> Slot:
    slot = call.topics.slot(call.session.user.id, topic)
    if not slot.idle:
        raise CommandError(
            "CONFLICT",
            f"Topic already open: {topic}\nChoose another name, or /close {topic} first.",
        )
    return slot


def _absolute(call: Call, target: str) -> str:
    """The target as any topic understands it; relative names start where this one stands."""
    going = destination(call, target)
    location = call.session.location
    if isinstance(going.address, WebAddress):
        return f"{going.address.url}{going.part}"
    if going.address is not None:
        return f"{going.address.path.as_uri()}{going.part}"
    if location is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    return f"{location.uri}{going.part}"
