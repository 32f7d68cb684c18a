"""`/topics`, `/session`, `/close`: the topics of a user, and leaving them."""

from msgspec.structs import replace

from stringd.runtime.errors import CommandError
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.session import Session, Slot, titled
from stringd.wire.result import Result
from stringd.wire.topic import TOPIC_TYPES, InvalidTopicError, Topic, parse_topic


def topics(call: Call) -> Result:
    """List the user's topics, all or those of one type."""
    wanted = call.argument.strip()
    if wanted and wanted not in TOPIC_TYPES:
        raise CommandError(
            None, f"Unknown topic type: {wanted}\nValid types: {', '.join(TOPIC_TYPES)}"
        )
    slots = [
        slot
        for slot in call.topics.sessions(call.session.user.id)
        if not wanted or slot.topic.type == wanted
    ]
    if not slots:
        return Result.page("", f"No {wanted} topics open.")
    noun = "topic" if len(slots) == 1 else "topics"
    counted = f"{len(slots)} {f'{wanted} ' if wanted else ''}{noun} open."
    heading = f"{wanted} topics:" if wanted else "Active topics:"
    return Result.page("", "\n".join([heading, "", *_rows(slots, call.session), "", counted]))


async def session(call: Call) -> Result:
    """`/session [list]` lists topics, `/session close [name]` closes one."""
    verb, _, name = call.argument.partition(" ")
    if verb in ("", "list"):
        return topics(replace(call, line=replace(call.line, argument=name)))
    if verb != "close":
        raise CommandError(None, f"Unknown session command: /session {verb}")
    if sum(1 for _ in call.topics.sessions(call.session.user.id)) <= 1:
        raise CommandError(None, "Cannot close last session.")
    topic = _topic(name) if name.strip() else call.session.topic
    dropped = await _forget(call, topic)
    return Result.done(f"Closed session: {topic}{dropped}")


async def close(call: Call) -> Result:
    """Discard this topic's document, variables, history and shell, or another topic's."""
    if call.argument:
        topic = _topic(call.argument)
        dropped = await _forget(call, topic)
        return Result.done(f"Closed: {topic}{dropped}")
    shown = call.session.shown_path()
    if shown is None:
        raise CommandError("INVALID_TARGET", "No document open.")
    await call.session.reset()
    await call.topics.erase(call.session)
    return Result.done(f"Closed: {shown}")


async def _forget(call: Call, topic: Topic) -> str:
    """Close a topic; what the reply says about commands that waited for it."""
    dropped = dropped_line(call.topics.drop_waiting(call.session.user.id, topic))
    forgotten = await call.topics.forget(call.session.user.id, topic)
    if forgotten is None:
        raise CommandError("NOT_FOUND", f"No such topic: {topic}\nUse /topics to see what is open.")
    # It may be the caller's own, whose reply must not show the document any more.
    await forgotten.reset()
    return dropped


def dropped_line(commands: list[str]) -> str:
    """A line about commands that will not run; empty when there are none."""
    if not commands:
        return ""
    what = "a command that waited" if len(commands) == 1 else f"{len(commands)} that waited"
    return f"\nNot run: {what}: {'; '.join(map(titled, commands))}"


def _topic(name: str) -> Topic:
    try:
        return parse_topic(name)
    except InvalidTopicError as error:
        raise CommandError("INVALID_TARGET", str(error)) from error


def _rows(slots: list[Slot], caller: Session) -> list[str]:
    names = max(len(slot.topic.canonical) for slot in slots)
    types = max(len(slot.topic.type) for slot in slots)
    return [
        f"{'*' if slot.session is caller else ' '} {slot.topic.canonical:<{names}}"
        f"  {slot.topic.type:<{types}}  {slot.session.detail() if slot.session else ''}"
        for slot in slots
    ]
