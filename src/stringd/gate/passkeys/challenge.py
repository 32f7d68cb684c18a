"""What a passkey signs: the hash of everything that was asked about. Pure.

An answer counts for the question it was made for and for no other one, so whatever could make a
difference is in the hash: the words, the variables, the files that would be executed, as whom and
where, who asks, and a number that is used once.
"""

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Final

from stringd.gate.program import ShownProgram
from stringd.gate.question import Question
from stringd.gate.sha import sha256

# A signature of ours is not one of anything else.
_PURPOSE: Final = b"stringd gate: approve exactly this\n"
DIRECTORY: Final = "/"
"""Where every command runs."""


def challenge(question: Question, nonce: bytes) -> bytes:
    """The 32 bytes an authenticator is asked to sign for this question."""
    return sha256(_PURPOSE + sha256(nonce).digest() + encode_question(question)).digest()


def encode_question(question: Question) -> bytes:
    """A question as bytes: two that differ in anything have different ones."""
    request = question.request
    whole: dict[str, object] = {
        "request": {each.name: getattr(request, each.name) for each in fields(request)},
        "peer": {each.name: getattr(question.peer, each.name) for each in fields(question.peer)},
        "programs": [_program(each) for each in question.programs],
        "sudo": None if question.sudo is None else _program(question.sudo),
        "files": [[weak.path, weak.who] for weak in question.files.named],
        "more_files": question.files.more,
        "environment": dict(question.env),
        "account": question.account,
        "as_root": question.as_root,
        "directory": DIRECTORY,
        "home": question.home,
        "route": _route(question),
    }
    return json.dumps(whole, sort_keys=True, separators=(",", ":"), default=_plain).encode("ascii")


def _program(program: ShownProgram) -> dict[str, object]:
    held = program.held
    return {
        "word": program.word,
        "path": program.path,
        "real": program.real,
        "identity": None if program.identity is None else list(program.identity),
        "digest": None if held is None else held.digest,
    }


def _route(question: Question) -> dict[str, object] | None:
    if (route := question.route) is None:
        return None
    host = {each.name: getattr(route.host, each.name) for each in fields(route.host)}
    return {"host": host, "ssh": _program(route.ssh), "caution": route.caution}


def _plain(value: object) -> object:
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"{type(value).__name__} has no place in a challenge")
