"""What a passkey signs: whatever makes a difference to the person makes one to the signature."""

from dataclasses import replace

import pytest

from stringd.gate.arguments import ChangeableFiles
from stringd.gate.hosts import HostEntry
from stringd.gate.passkeys.challenge import challenge
from stringd.gate.program import Held, Identity, Route, ShownProgram
from stringd.gate.question import Question
from stringd.gate.trust import Weakness
from tests.gate.test_hosts import KEY
from tests.gate.test_question import PEER
from tests.gate.test_validate import valid, validated
from tests.requirements import proves

NONCE = bytes(32)
PROGRAM = ShownProgram(
    "ls", "/bin/ls", "/usr/bin/ls", Identity(1, 2, 3, 4, 5), held=Held(3, digest="a")
)
SSH = ShownProgram("ssh", "/usr/bin/ssh", "/usr/bin/ssh")
HOST = HostEntry("web1", "alice@10.0.0.5", KEY, 22)
BASE = {"id": "1", "pipeline": (("ls", "-l", "a b"),), "privileged": False}


def asked(**fields: object) -> Question:
    request = validated(valid(**{**BASE, **fields}))
    return Question(request, (PROGRAM,), PEER, "alice", env={"PATH": "/bin"}, home="/home/alice")


OTHERS = {
    "another word": asked(pipeline=(("ls", "-l", "a c"),)),
    "the words split elsewhere": asked(pipeline=(("ls", "-l", "a", "b"),)),
    "a stage instead of words": asked(pipeline=(("ls",), ("-l", "a b"))),
    "a variable": asked(env={"LANG": "C"}),
    "another request": asked(id="2"),
    "another reason": asked(reason="because"),
    "another session": asked(session="x"),
    "the agent forwarded": asked(forward_agent=True),
    "root": replace(asked(privileged=True), sudo=ShownProgram("sudo", "/usr/bin/sudo")),
    "another account": replace(asked(), account="bob"),
    "another environment": replace(asked(), env={"PATH": "/opt"}),
    "another home": replace(asked(), home="/"),
    "another program": replace(asked(), programs=(replace(PROGRAM, path="/opt/ls"),)),
    "another file behind it": replace(asked(), programs=(replace(PROGRAM, real="/x"),)),
    "a file written since": replace(
        asked(), programs=(replace(PROGRAM, identity=Identity(1, 2, 3, 4, 6)),)
    ),
    "other bytes held": replace(asked(), programs=(replace(PROGRAM, held=Held(3, digest="b")),)),
    "another caller": replace(asked(), peer=replace(PEER, pid=1)),
    "a file that can change": replace(asked(), files=ChangeableFiles((Weakness("/a", "bob"),))),
    "another machine": replace(asked(), route=Route(HOST, SSH)),
    "a caution about it": replace(asked(), route=Route(HOST, SSH, "new")),
}


@proves("GATE-KEY-04")
@pytest.mark.parametrize("name", OTHERS)
def test_a_difference_is_one_in_the_challenge(name: str) -> None:
    assert challenge(OTHERS[name], NONCE) != challenge(asked(), NONCE)


@proves("GATE-KEY-04")
def test_they_differ_from_each_other_too() -> None:
    everything = {challenge(each, NONCE) for each in [asked(), *OTHERS.values()]}
    assert len(everything) == len(OTHERS) + 1
    assert {len(each) for each in everything} == {32}


@proves("GATE-KEY-04")
def test_the_same_question_asked_again_is_another_challenge() -> None:
    assert challenge(asked(), NONCE) == challenge(asked(), NONCE)
    assert challenge(asked(), NONCE) != challenge(asked(), b"\x01" * 32)
