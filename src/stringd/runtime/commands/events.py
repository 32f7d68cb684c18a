"""`/events`: what programs of this machine left for the user, in this topic or another."""

import asyncio
from typing import Final

from stringd.documents import tokens
from stringd.runtime.errors import CommandError
from stringd.runtime.inbox import Inbox, InboxEvent
from stringd.runtime.topics.call import Call
from stringd.wire.result import Result

SHOWN: Final = 50
PREVIEW: Final = 80
_USAGE: Final = "Usage: /events [list] [--all], /events.read <id>, /events.ack <id>, /events.clear"
_COMMANDS: Final = """/events.read <id>   show one
/events.ack <id>    mark one as dealt with
/events.clear       remove those (--all: every one)
/events --all       also list those"""


async def events(call: Call) -> Result:
    """List, read, acknowledge or clear events: `/events`, `/events.read <id>` and so on."""
    inbox, user = call.services.inbox, call.session.user.id
    words = tokens(call.argument)
    verb = call.line.name.partition(".")[2] or (words.pop(0) if words[:1] == ["list"] else "list")
    everything = "--all" in words
    named = [word for word in words if word != "--all"]
    match verb, named:
        case "list", []:
            return _listing(call, await asyncio.to_thread(inbox.events, user), everything)
        case "read", [ident]:
            return _shown(await _find(inbox, user, ident))
        case "ack", [ident]:
            acked = await asyncio.to_thread(inbox.acknowledge, user, ident)
            if acked is None:
                raise _unknown(ident)
            return Result.done(f"Acked {ident}")
        case "clear", []:
            count = await asyncio.to_thread(inbox.clear, user, pending_too=everything)
            return Result.done(f"Cleared {count} {'event' if count == 1 else 'events'}")
    raise CommandError("INVALID_TARGET", _USAGE)


async def _find(inbox: Inbox, user: str, ident: str) -> InboxEvent:
    found = await asyncio.to_thread(inbox.events, user)
    event = next((each for each in found if each.id == ident), None)
    if event is None:
        raise _unknown(ident)
    return event


def _unknown(ident: str) -> CommandError:
    return CommandError("NOT_FOUND", f"Event not found: {ident}\nUse /events to list them.")


def _listing(call: Call, found: list[InboxEvent], everything: bool) -> Result:
    wanted = [each for each in reversed(found) if everything or each.status == "pending"]
    here = str(call.session.topic)
    rows = [
        f"  {each.id}  {each.status}  {each.received_at}  {_preview(each.text)}"
        + ("" if each.topic == here else f"  [{each.topic}]")
        for each in wanted[:SHOWN]
    ]
    if len(wanted) > SHOWN:
        rows.append(f"  +{len(wanted) - SHOWN} more")
    heading = f"## {'Events' if everything else 'Pending events'} ({len(wanted)})"
    return Result.page("Events", "\n".join([heading, *rows, "", _COMMANDS]))


def _preview(text: str) -> str:
    line = next((line.strip() for line in text.splitlines() if line.strip()), "")
    return line if len(line) <= PREVIEW else f"{line[: PREVIEW - 3]}..."


def _shown(event: InboxEvent) -> Result:
    lines = [
        f"receivedAt: {event.received_at}",
        "source: local-webhook",
        f"status: {event.status}",
        f"topic: {event.topic}",
        "",
        event.text,
        "",
        f"next: /events.ack {event.id}",
    ]
    return Result.page(f"Event {event.id}", "\n".join(lines))
