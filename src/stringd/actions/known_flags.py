"""Which flags an action takes, and what a caller is told about one it does not."""

import re
from typing import Final

from stringd.actions.errors import ActionError, payload_error
from stringd.actions.schema import usage
from stringd.actions.templates import ALL_ARGUMENTS, Hole, Variable, cut
from stringd.documents import Action, Flags

FILE_SUFFIX: Final = "-file"
"""`--<field>-file <path>` gives a field the text of a file."""
_REFERENCE: Final = re.compile(r"\{([A-Za-z_]\w*)", re.ASCII)
_SIMILAR: Final = 0.6


def check_flags(action: Action, flags: Flags, label: str) -> None:
    """Refuse a flag that nothing of the action would use. Raises `ActionError`."""
    unknown = [name for name in flags.values if name not in _known(action)]
    if unknown and not _takes_the_rest(action):
        raise _refusal(action, unknown[0], label)


def _known(action: Action) -> set[str]:
    """Declared fields, and what its templates name without declaring it."""
    names = {field.name for field in action.fields}
    holes = (piece for text in _request_texts(action) for piece in cut(text))
    answers = (action.response or "", action.error or "")
    return {
        *names,
        *(f"{name}{FILE_SUFFIX}" for name in names),
        *(piece.name for piece in holes if isinstance(piece, Hole)),
        *(name for text in answers for name in _REFERENCE.findall(text)),
    }


def _takes_the_rest(action: Action) -> bool:
    """`{...args}` or `$ARGS` takes everything; so does a request without any declared field."""
    if not action.fields and action.method != "CLI":
        return True
    pieces = (piece for text in _request_texts(action) for piece in cut(text))
    return any(
        (isinstance(piece, Hole) and piece.name == ALL_ARGUMENTS)
        or (isinstance(piece, Variable) and piece.name == "ARGS")
        for piece in pieces
    )


def _request_texts(action: Action) -> tuple[str, ...]:
    return (action.target, action.body or "", *(value for _, value in action.headers))


def _refusal(action: Action, name: str, label: str) -> ActionError:
    from difflib import get_close_matches  # only a mistake needs it

    dashes = "-" if len(name) == 1 else "--"
    names = [field.name for field in action.fields]
    near = get_close_matches(name, names, 1, _SIMILAR)
    if not near and len(name) > 1:
        near = [each for each in names if each.startswith(name) or name.startswith(each)][:1]
    meant = f" Did you mean --{near[0]}?" if near else ""
    if not names:
        return payload_error(f"Unknown flag: {dashes}{name}.\n{label} takes no flags.")
    return payload_error(f"Unknown flag: {dashes}{name}.{meant}\n\n{usage(action)}")
