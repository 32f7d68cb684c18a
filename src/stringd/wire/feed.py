"""`GET /events`: what happens in the daemon, each kind a type, written as server-sent events.

`kind` is both the event's name on the stream and a member of its data. An event's id is
`<boot>-<number>`: numbers grow by one within one life of the daemon.
"""

from typing import Final, Literal, NamedTuple

import msgspec
from msgspec import Struct

from stringd.wire.run_status import RunStatus


class FeedEvent(Struct, rename="camel", kw_only=True, tag_field="kind", gc=False):
    """`id` and `ts` are set when the event is encoded, `ts` only if its publisher left it empty."""

    id: str = ""
    ts: str = ""


class TopicCreated(FeedEvent, tag="topic.created"):
    """A topic has a session: somebody used it for the first time, or again after it was closed."""

    user: str
    topic: str


class TopicExecuting(FeedEvent, tag="topic.executing"):
    """A command that does not answer at once began; `number` pairs it with its `topic.done`."""

    user: str
    topic: str
    command: str
    client: str
    number: int


class TopicDone(FeedEvent, tag="topic.done"):
    """A command ended. `number` is 0 for one that answered at once."""

    user: str
    topic: str
    command: str
    client: str
    ok: bool
    code: str | None
    ms: float
    number: int = 0


class TopicClosed(FeedEvent, tag="topic.closed"):
    user: str
    topic: str


class InboxReceived(FeedEvent, tag="inbox.received"):
    """A program left an event in a topic; `/events.read <eventId>` shows all of its text."""

    user: str
    topic: str
    event_id: str
    text: str


class RunChanged(FeedEvent, tag="run.state"):
    """A run changed its state. `error` is set when it failed, `result` when it completed."""

    run_id: str
    strategy: str
    status: RunStatus | Literal["deleted"]
    result: str = ""
    error: str = ""


class RunStep(FeedEvent, tag="run.step"):
    run_id: str
    step: str
    state: Literal["started", "completed"]


PromptKind = Literal["permission", "question", "input"]


class RunWaiting(FeedEvent, tag="run.waiting"):
    """A run asks its human. `text` is the question; permissions have the other fields."""

    run_id: str
    strategy: str
    prompt: PromptKind
    request_id: str
    agent: str
    text: str = ""
    tool: str = ""
    operation: str = ""
    resource: str = ""


class RunResolved(FeedEvent, tag="run.resolved"):
    """A prompt no longer waits: answered, or gone with its run (`answer` is then empty)."""

    run_id: str
    prompt: PromptKind
    request_id: str
    answer: str = ""
    by: str = ""


class GateAsked(FeedEvent, tag="gate.asked"):
    """Somebody asks at the gate. `stages` are the commands of the pipeline, word by word."""

    request_id: str
    stages: list[list[str]]
    privileged: bool
    reason: str = ""
    session: str = ""
    program: str = ""
    cwd: str = ""
    page: str = ""
    """The gate's own page, where a passkey can approve it; empty without one."""


class GateDecided(FeedEvent, tag="gate.decided"):
    request_id: str
    decision: str
    note: str = ""
    by: str = ""
    """`terminal`, `passkey:<name>`, or the rule or grant that decided."""


class GateEnded(FeedEvent, tag="gate.ended"):
    """A request is over: its command ended, or it was withdrawn, stopped or could not run."""

    request_id: str
    how: Literal["finished", "failed", "abandoned", "stopped"]
    exit_codes: list[int] = []
    message: str = ""


class DaemonHealth(FeedEvent, tag="daemon.health"):
    """Every five seconds while somebody watches.

    `failed_commands` and `errors` count from the daemon's start; `loop_delay_ms` is how late the
    daemon came to this very event.
    """

    requests_per_second: float
    queued: int
    memory_bytes: int
    topics: int
    shells: int
    runs: int
    waiting: int
    failed_commands: int
    errors: int
    readers: int
    loop_delay_ms: float
    busy_shells: list[tuple[str, str]] = []
    """User and topic of shells whose command runs, whether or not somebody waits for its reply."""


class FeedMissed(FeedEvent, tag="feed.missed"):
    """Events this reader did not get: it was too slow, or the daemon was started again."""

    why: Literal["behind", "restarted"]
    count: int


AnyFeedEvent = (
    TopicCreated
    | TopicExecuting
    | TopicDone
    | TopicClosed
    | InboxReceived
    | RunChanged
    | RunStep
    | RunWaiting
    | RunResolved
    | GateAsked
    | GateDecided
    | GateEnded
    | DaemonHealth
    | FeedMissed
)

KINDS: Final = tuple(
    str(kind.__struct_config__.tag) for kind in AnyFeedEvent.__args__ if kind is not FeedMissed
)
"""Every kind a reader can narrow the feed to; `feed.missed` always comes."""

KEEP_ALIVE: Final = b": alive\n\n"

_encode = msgspec.json.Encoder().encode


class FeedPosition(NamedTuple):
    """An event's id: which life of the daemon, and its number there."""

    boot: str
    number: int

    def __str__(self) -> str:
        return f"{self.boot}-{self.number}"


class FeedQueryError(Exception):
    """A position or a kind that is not one; `str()` says what to write."""


def parse_position(text: str) -> FeedPosition:
    """The id of an event. Raises `FeedQueryError`."""
    boot, dash, number = text.strip().rpartition("-")
    if not (dash and boot and number.isascii() and number.isdigit() and len(number) < 16):
        raise FeedQueryError(f"'{text[:80]}' is not the id of an event: use one the feed sent")
    return FeedPosition(boot, int(number))


def parse_kinds(text: str) -> frozenset[str]:
    """The kinds named by `topic.done,run.*` or `gate`. Raises `FeedQueryError`."""
    wanted: set[str] = set()
    for word in filter(None, (part.strip() for part in text.split(","))):
        group = word.removesuffix("*").removesuffix(".")
        found = {kind for kind in KINDS if kind in (word, group) or kind.startswith(f"{group}.")}
        if not found:
            raise FeedQueryError(f"'{word[:80]}' is not a kind of event: use {', '.join(KINDS)}")
        wanted |= found
    return frozenset(wanted) or frozenset(KINDS)


def kind_of(event: FeedEvent) -> str:
    return str(event.__struct_config__.tag)


def encode_event(position: FeedPosition, event: FeedEvent) -> bytes:
    """An event as it is sent; it gets its id."""
    event.id = str(position)
    return b"id: %b\nevent: %b\ndata: %b\n\n" % (
        event.id.encode(),
        kind_of(event).encode(),
        _encode(event),
    )


def decode_event(data: str) -> AnyFeedEvent:
    """The event in the data of a server-sent event. Raises `msgspec.MsgspecError`."""
    event: AnyFeedEvent = msgspec.json.decode(data, type=AnyFeedEvent)
    return event
