"""Reading JSON request bodies: strings are trimmed, wrong types are named.

Half a character, as `\\ud83d` alone, is read as `�`.
"""

import msgspec

from stringd.formats.surrogates import without_lone_escapes

_decode = msgspec.json.Decoder().decode


class BodyError(ValueError):
    """The body is not what the endpoint takes; `str()` is the reason for a 400."""


class JsonObject:
    """A decoded request body whose fields are read one by one, in the protocol's order."""

    def __init__(self, fields: dict[str, object]) -> None:
        self._fields = fields

    def text(self, *names: str) -> str | None:
        """The first of these fields that is present, trimmed; blank and null count as absent."""
        for name in names:
            value = self._fields.get(name)
            if value is None:
                continue
            if not isinstance(value, str):
                raise BodyError(f"{name} must be a string")
            if value.strip():
                return value.strip()
        return None

    def raw_text(self, name: str) -> str | None:
        """The field exactly as sent; null counts as absent."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, str):
            raise BodyError(f"{name} must be a string")
        return value

    def switch(self, name: str) -> bool | None:
        """True or false, or None when the field is absent."""
        value = self._fields.get(name)
        if value is not None and not isinstance(value, bool):
            raise BodyError(f"{name} must be true or false")
        return value

    def variables(self, name: str) -> dict[str, str]:
        """An object of strings, empty when the field is absent."""
        value = self._fields.get(name)
        if value is None:
            return {}
        if isinstance(value, dict) and all(isinstance(item, str) for item in value.values()):
            return value
        raise BodyError(f"{name} must be an object of strings")

    def texts(self, name: str) -> list[str] | None:
        """A list of strings, or None when the field is absent."""
        value = self._fields.get(name)
        if value is None:
            return None
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return value
        raise BodyError(f"{name} must be an array of strings")


class ExecBody(msgspec.Struct, frozen=True, gc=False):
    """A well-typed body of `POST /exec`; `cwd` is the directory the client vouches for."""

    cmd: str | None = None
    topic: str | None = None
    request_id: str | None = None
    cwd: str | None = None
    env: dict[str, str] | None = None
    """Variables the client vouches for, for a shell it starts."""
    diff: bool | None = None
    """Whether an edit's reply shows what changed; the user's own setting when absent."""


_decode_exec = msgspec.json.Decoder(ExecBody).decode


def parse_exec_body(body: bytes) -> ExecBody | None:
    """The fields of a `POST /exec`, or None when the body is not a JSON object.

    Raises `BodyError` naming the first field of a wrong type.
    """
    try:
        return _decode_exec(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        whole = without_lone_escapes(body)
        if whole != body:
            return parse_exec_body(whole)
        fields = parse_object(body)
    if fields is None:
        return None
    for name in ExecBody.__struct_fields__:
        read = {"diff": fields.switch, "env": fields.variables}.get(name, fields.raw_text)
        read(name)
    return None


def parse_object(body: bytes) -> JsonObject | None:
    """The JSON object in `body`, or None when it is not a JSON object."""
    try:
        value = _decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        whole = without_lone_escapes(body)
        return parse_object(whole) if whole != body else None
    return JsonObject(value) if isinstance(value, dict) else None
