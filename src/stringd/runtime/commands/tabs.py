"""`/open --tab <name> <target>`, `/open app:x:config`, `/open bash:x`: opening another topic."""

from collections.abc import Awaitable, Callable

from msgspec.structs import replace

from stringd.runtime.editing.paths import locate
from stringd.runtime.errors import CommandError
from stringd.runtime.pages.target import Destination, WebAddress, destination
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import is_web
from stringd.runtime.topics.session import Slot
from stringd.wire.result import Result
from stringd.wire.topic import InvalidTopicError, Topic, parse_topic

OpenAt = Callable[[Call, Destination], Result | Awaitable[Result]]
Open = Callable[[Call], Result | Awaitable[Result]]

_USAGE = "Usage: /open --tab <topic> <target>"


async def open_in_tab(call: Call, text: str, open_at: OpenAt) -> Result:
    """Open a target in a new topic that starts with this one's variables and no history."""
    name, _, target = text.strip().partition(" ")
    if is_web(name) and not target:
        name, target = _next_tab(call), name
    if not target.strip():
        raise CommandError("INVALID_TARGET", _USAGE)
    # Understood here: what may be opened depends on the page whose link it is.
    going = _destination(call, target.strip())
    topic = _topic(name, web=isinstance(going.address, WebAddress))
    slot = _fresh_slot(call, topic)
    slot.queue.take_turn(0)
    try:
        session = call.topics.session(slot)
        session.variables.update(call.session.variables)
        session.variable_owners.update(call.session.variable_owners)
        if session.cookies is not None and call.session.cookies is not None:
            session.cookies = call.session.cookies.copy()
        outcome = open_at(replace(call, session=session), going)
        result = outcome if isinstance(outcome, Result) else await outcome
        writing = call.topics.save(session)
        if writing is not None:
            await writing
    except CommandError:
        await call.topics.forget(slot.user_id, slot.topic)
        raise
    finally:
        call.topics.leave(slot)
    return Result.page(f"{result.message}\nTopic: {slot.topic}", result.content or "")


def named_topic(call: Call, target: str) -> Topic | None:
    """The other topic that a target is: a shell, or an app with a configuration of its own."""
    if not target.startswith("bash:") and not (target.startswith("app:") and target.count(":") > 1):
        return None
    try:
        topic = parse_topic(target)
    except InvalidTopicError:
        return None
    return None if topic == call.session.topic else topic


async def open_topic(call: Call, topic: Topic, open_: Open) -> Result:
    """Open a topic's own page there; a shell is only made ready. The caller's topic stays."""
    slot = call.topics.slot(call.session.user.id, topic)
    if slot.queue.busy:
        raise CommandError("CONFLICT", f"Topic is busy: {topic}\nAsk again when it is done.")
    slot.queue.take_turn(0)
    new = slot.session is None
    try:
        session = call.topics.session(slot)
        if topic.type == "bash":
            result = Result.done(f"Opened {topic}\nTopic: {topic}")
        else:
            line = replace(call.line, argument="", body=None)
            outcome = open_(replace(call, session=session, line=line))
            shown = outcome if isinstance(outcome, Result) else await outcome
            result = Result.page(f"{shown.message}\nTopic: {topic}", shown.content or "")
        writing = call.topics.save(session)
        if writing is not None:
            await writing
    except CommandError:
        if new:
            await call.topics.forget(slot.user_id, topic)
        raise
    finally:
        call.topics.leave(slot)
    return result


def _next_tab(call: Call) -> str:
    taken = {slot.topic.canonical for slot in call.topics.sessions(call.session.user.id)}
    number = 1
    while f"web:tab_{number}" in taken:
        number += 1
    return f"web:tab_{number}"


def _topic(name: str, *, web: bool) -> Topic:
    """The topic of a name; without a type, that of what is opened there."""
    try:
        topic = parse_topic(f"web:{name}" if web and ":" not in name else name)
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


def _destination(call: Call, target: str) -> Destination:
    """Where a target leads, as any topic understands it. Raises `CommandError`."""
    going = destination(call, target)
    if going.address is not None:
        return going
    location = call.session.location
    if location is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    if is_web(location.uri):
        return going._replace(
            address=WebAddress(location.uri, may_be_private=not location.place.public)
        )
    return going._replace(address=locate(call, location.uri))
