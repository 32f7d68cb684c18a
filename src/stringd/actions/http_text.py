"""An HTTP action and its inputs → the request to send, every value escaped for where it lands."""

import base64
import re
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import quote, quote_plus, unquote, unquote_plus, urljoin, urlsplit

import msgspec

from stringd.actions.errors import ActionError, payload_error
from stringd.actions.json_text import JsonText
from stringd.actions.place import ActionContext, ListValue, set_hint
from stringd.actions.secrets import masked
from stringd.actions.templates import Hole, Inputs, Variable, cut
from stringd.documents import Action

ACCEPT: Final = "text/markdown, text/plain"
JSON: Final = "application/json"
FORM: Final = "application/x-www-form-urlencoded"
MAX_BODY_FILE: Final = 64 * 1024 * 1024
COMPONENT_SAFE: Final = "-_.!~*'()"
"""What `encodeURIComponent` leaves alone besides letters and digits."""
# An author may keep a whole address or a list of parameters in a variable.
_VARIABLE_SAFE: Final = COMPONENT_SAFE + "&=+%:/?,;@$[]"
_QUERY_SAFE: Final = "*-._"
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_LINE_BREAK: Final = re.compile(r"[\r\n\0]")
_MODIFIERS: Final = frozenset({"base64", "base64file", "file"})


@dataclass(frozen=True)
class HttpCall:
    """A composed request. `shown_url` is safe to show."""

    method: str
    url: str
    shown_url: str
    headers: dict[str, str]
    body: bytes | None


@dataclass
class _Text:
    """Text in two versions: as sent, and as replies may show it."""

    sent: list[str] = field(default_factory=list)
    shown: list[str] = field(default_factory=list)

    def add(self, sent: str, shown: str | None = None) -> None:
        self.sent.append(sent)
        self.shown.append(sent if shown is None else shown)


class RequestComposer:
    """Fills the templates of one HTTP action in the order callers can rely on."""

    def __init__(self, action: Action, inputs: Inputs) -> None:
        self._action = action
        self._inputs = inputs
        self._place: ActionContext = inputs.place
        self._missing: dict[str, None] = {}

    def address(self) -> tuple[str, str]:
        """The address as sent and as shown, without leftover values. Raises `ActionError`."""
        text = _Text()
        for piece in cut(self._action.target):
            if isinstance(piece, str):
                text.add(piece)
            elif isinstance(piece, Variable) and piece.name != "ARGS":
                value = self._resolve(piece)
                if value is None:
                    text.add(piece.raw)
                else:
                    text.add(quote(value, safe=_VARIABLE_SAFE), self._shown(piece.name, value))
            else:
                value = self._caller_text(piece)
                text.add(piece.raw if value is None else _component(value))
        url, shown = (_absolute("".join(each), self._place) for each in (text.sent, text.shown))
        _refuse_dot_segments(url, self._action.target)
        return url, shown

    def headers(self) -> dict[str, str]:
        """Declared headers, names as written. Raises `ActionError`."""
        found: dict[str, str] = {}
        for name, template in self._action.headers:
            value = self._header(template)
            if _LINE_BREAK.search(value):
                raise payload_error(f"The value of header {name} cannot contain a line break.")
            found[name] = value
        return found

    def _header(self, template: str) -> str:
        pieces: list[str] = []
        for piece in cut(template):
            if isinstance(piece, str):
                pieces.append(piece)
                continue
            if isinstance(piece, Variable) and piece.name != "ARGS":
                value = self._resolve(piece)
            else:
                value = self._caller_text(piece)
            pieces.append(piece.raw if value is None else value)
        return "".join(pieces)

    def request(self, url: str, shown: str, headers: dict[str, str]) -> HttpCall:
        """The whole request. Raises `ActionError`."""
        kind = next((v for k, v in headers.items() if k.lower() == "content-type"), JSON)
        method = self._action.method
        body: bytes | None = None
        if self._action.body is not None and method != "GET":
            body = self._body(self._action.body, kind)
        elif method in ("POST", "PUT", "PATCH"):
            body = msgspec.json.encode(
                {_encodable(k): self._leftover(k, v) for k, v in self._inputs.remaining().items()}
            )
        if self._missing:
            raise self._unresolved()
        if method in ("GET", "DELETE"):
            extra = self._inputs.remaining()
            url, shown = with_query(url, extra), with_query(shown, extra)
        if not url.startswith(("http://", "https://")):
            raise ActionError("LOAD_ERROR", f"Actions can only topic HTTP endpoints (got: {shown})")
        injected = {"Accept": ACCEPT, **({"Content-Type": JSON} if body is not None else {})}
        declared = {name.lower() for name in headers}
        sent = {name: value for name, value in injected.items() if name.lower() not in declared}
        return HttpCall(method, url, shown, {**sent, **headers}, body)

    def _body(self, template: str, kind: str) -> bytes:
        json = JsonText(strict=template.lstrip()[:1] in ("{", "[") and "json" in kind.lower())
        form = FORM in kind.lower()
        for piece in cut(template):
            if isinstance(piece, str):
                json.author(piece)
                continue
            if isinstance(piece, Variable) and piece.name != "ARGS":
                value = self._resolve(piece)
            else:
                value = self._caller_text(piece)
            if value is None:
                json.author(piece.raw)
            elif form:
                json.raw(_component(value))
            else:
                items = self._inputs.items(piece) if isinstance(piece, Hole) else None
                json.value(value, None if items is None else items.json)
        return json.text().encode("utf-8", "surrogateescape")

    def _leftover(self, name: str, text: str) -> str | msgspec.Raw:
        """A value for a body the author did not write: lists and JSON are what they are."""
        value = self._inputs.values.get(name)
        if isinstance(value, ListValue):
            return msgspec.Raw(_encodable(value.json).encode())
        declared = self._action.field(name)
        if declared is not None and declared.type == "json":
            return msgspec.Raw(_encodable(text).encode())
        return _encodable(text)

    def _caller_text(self, piece: Hole | Variable) -> str | None:
        """What the caller put into a hole; None leaves it as written."""
        if isinstance(piece, Variable):
            return self._place.names.context.get(piece.name)
        if not piece.modifiers:
            return self._inputs.take(piece)
        if not _MODIFIERS.issuperset(piece.modifiers):
            return None
        value = self._inputs.take(piece)
        return None if value is None else _modified(value, piece.modifiers, self._place)

    def _resolve(self, variable: Variable) -> str | None:
        value = self._place.names.variable(variable.name)
        if value is None and variable.must_resolve:
            self._missing[variable.name] = None
        return value

    def _shown(self, name: str, value: str) -> str:
        if name in self._place.names.context:
            return quote(value, safe=_VARIABLE_SAFE)
        # A stored address is not a secret, and a reader needs it to understand the message.
        if value.startswith(("http://", "https://")) and "?" not in value and "@" not in value:
            return value
        return masked(value)

    def _unresolved(self) -> ActionError:
        names = list(self._missing)
        listed = ", ".join(f"${name}" for name in names)
        text = f"Unresolved environment variable(s):\n  {listed}"
        hint = set_hint(self._place, names)
        return ActionError("INVALID_PAYLOAD", f"{text}\n\n{hint}", setup=True)


def _absolute(address: str, place: ActionContext) -> str:
    """An address as it is when it is whole, else resolved against the open document."""
    return address if _SCHEME.match(address) else urljoin(place.uri, address)


def _encodable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def with_query(url: str, values: dict[str, str]) -> str:
    """The address with values as query parameters; equal names are replaced.

    Without values the query stays exactly as it is written.
    """
    if not values:
        return url
    address, mark, fragment = url.partition("#")
    path, _, query = address.partition("?")
    left = dict(values)
    pairs: list[str] = []
    for pair in filter(None, query.split("&")):
        name = unquote_plus(pair.partition("=")[0])
        if name not in values:
            pairs.append(pair)
        elif name in left:
            pairs.append(_pair(name, left.pop(name)))
    pairs += [_pair(name, value) for name, value in left.items()]
    return f"{path}?{'&'.join(pairs)}{mark}{fragment}"


def _pair(name: str, value: str) -> str:
    return f"{_form(name)}={_form(value)}"


def _form(text: str) -> str:
    return quote_plus(text, safe=_QUERY_SAFE, errors="replace")


def _component(value: str) -> str:
    return quote(value, safe=COMPONENT_SAFE, errors="replace")


def _refuse_dot_segments(url: str, template: str) -> None:
    """A value that is `..` would climb out of the author's path, however it is encoded."""
    written = {segment for segment in urlsplit(template).path.split("/") if "{" not in segment}
    for segment in urlsplit(url).path.split("/"):
        if unquote(segment) in (".", "..") and segment not in written:
            raise payload_error(f'A value may not be "{unquote(segment)}" in the path of a URL.')


def _modified(value: str, modifiers: tuple[str, ...], place: ActionContext) -> str:
    """Apply `base64`, `base64file` and `file` from left to right. Raises `ActionError`."""
    for modifier in modifiers:
        if modifier == "base64":
            data = value.encode("utf-8", "surrogateescape")
        else:
            try:
                data = place.topic.read_file(value, MAX_BODY_FILE)
            except ActionError as error:
                raise payload_error(error.message) from error
        if modifier == "file":
            value = data.decode("utf-8", "replace")
        else:
            value = base64.b64encode(data).decode("ascii")
    return value
