"""Topic names: `type:name`, the unit of session scope.

`string` validates topics before it connects, so this module imports nothing that starts slowly:
not even `typing`.
"""

TOPIC_TYPES = ("file", "web", "app", "bash")
DEFAULT_TOPIC = "file:main"

_SEGMENT = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-")


class InvalidTopicError(ValueError):
    """The text is not a topic; `str()` is the sentence the protocol fixes."""

    def __init__(self, raw: str) -> None:
        super().__init__(f"Invalid topic: {raw}")
        self.raw = raw


class Topic:
    """A canonical topic. `name` keeps every segment after the type."""

    __slots__ = ("canonical", "name", "type")

    def __init__(self, kind: str, name: str) -> None:
        self.canonical = f"{kind}:{name}"
        self.type = kind
        self.name = name

    def __str__(self) -> str:
        return self.canonical


def parse_topic(raw: str | None) -> Topic:
    """Canonicalise a topic: blank means `file:main`, a bare name means `file:<name>`.

    Raises `InvalidTopicError` for anything else that is not `type:segment[:segment…]`.
    """
    text = (raw or "").strip() or DEFAULT_TOPIC
    kind, colon, name = text.partition(":")
    if not colon:
        kind, name = "file", text
    if kind not in TOPIC_TYPES:
        raise InvalidTopicError(text)
    if not all(segment and _SEGMENT.issuperset(segment) for segment in name.split(":")):
        raise InvalidTopicError(text)
    return Topic(kind, name)
