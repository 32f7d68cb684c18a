"""How passkeys are written, and what of a file counts."""

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from stringd.gate.passkeys.passkey import (
    MAX_PASSKEYS,
    Passkey,
    PasskeyError,
    decode_passkeys,
    encode_passkeys,
)
from stringd.gate.passkeys.ring import PasskeyRing, read_passkeys
from tests.requirements import proves

ONE = Passkey("laptop", b"\x00\xff1", b"key 1", 3, "2026-01-01")
TWO = Passkey("key.2", b"2", b"key 2", 0, "2026-01-02")


@proves("GATE-KEY-09")
def test_what_is_written_is_read_again() -> None:
    assert decode_passkeys(encode_passkeys([ONE, TWO])) == (ONE, TWO)
    assert decode_passkeys(encode_passkeys([])) == ()


@proves("GATE-KEY-09")
@pytest.mark.parametrize(
    "change",
    [
        {"name": "two words"},
        {"name": "\u202eabc"},
        {"name": "x" * 41},
        {"id": ""},
        {"id": "*"},
        {"public_key": None},
        {"sign_count": -1},
        {"sign_count": True},
        {"added": "\x1b[2J"},
    ],
)
def test_where_one_entry_is_wrong_none_counts(change: dict[str, object]) -> None:
    value = json.loads(encode_passkeys([ONE, TWO]))
    value["passkeys"][1] |= change
    with pytest.raises(PasskeyError):
        decode_passkeys(json.dumps(value).encode())


@proves("GATE-KEY-09")
@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"passkeys": 1}', b"[" * 100_000])
def test_what_is_not_a_list_of_passkeys_is_none(data: bytes) -> None:
    with pytest.raises(PasskeyError):
        decode_passkeys(data)


@proves("GATE-KEY-09")
def test_two_of_one_name_or_one_key_are_refused() -> None:
    for other in (replace(TWO, name=ONE.name), replace(TWO, id=ONE.id)):
        with pytest.raises(PasskeyError, match="the same"):
            decode_passkeys(encode_passkeys([ONE, other]))


@proves("GATE-KEY-09")
def test_another_key_has_another_fingerprint() -> None:
    others = [replace(ONE, id=b"x"), replace(ONE, public_key=b"x"), TWO]
    assert ONE.fingerprint not in {each.fingerprint for each in others}


@proves("GATE-KEY-09")
def test_a_link_in_the_place_of_the_file_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "real").write_bytes(encode_passkeys([ONE]))
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert read_passkeys(tmp_path / "real") == (ONE,)
    assert read_passkeys(tmp_path / "none") == ()
    with pytest.raises(PasskeyError):
        read_passkeys(tmp_path / "link")


@proves("GATE-KEY-09")
def test_declined_passkeys_approve_nothing_and_are_not_lost(tmp_path: Path) -> None:
    ring = PasskeyRing(tmp_path / "keys")
    ring.start((ONE,), accepted=False)
    assert ring.by_id() == {}
    ring.add(TWO)
    assert ring.by_id() == {TWO.id: TWO}
    assert set(read_passkeys(tmp_path / "keys")) == {ONE, TWO}
    with pytest.raises(PasskeyError, match="revoke it first"):
        ring.check_free(ONE.name)


@proves("GATE-KEY-04")
@pytest.mark.parametrize(
    ("known", "said", "counts"),
    [(3, 4, True), (3, 3, False), (3, 2, False), (3, 0, False), (0, 0, True)],
)
def test_a_counter_that_counts_has_to_move_on(
    tmp_path: Path, known: int, said: int, counts: bool
) -> None:
    ring = PasskeyRing(tmp_path / "keys")
    ring.start((replace(ONE, sign_count=known),), accepted=True)
    approved: list[bool] = []
    try:
        ring.use(replace(ONE, sign_count=said), lambda: approved.append(True))
    except PasskeyError:
        pass
    assert bool(approved) is counts
    assert ring.counting[0].sign_count == (said if counts else known)


@proves("GATE-KEY-08")
def test_a_passkey_revoked_while_it_answers_does_not_count(tmp_path: Path) -> None:
    ring = PasskeyRing(tmp_path / "keys")
    ring.start((ONE, TWO), accepted=True)
    ring.revoke(ONE.name)
    with pytest.raises(PasskeyError, match="not registered"):
        ring.use(replace(ONE, sign_count=9), lambda: pytest.fail("approved"))
    assert read_passkeys(tmp_path / "keys") == (TWO,)


@proves("GATE-KEY-09")
def test_there_is_an_end_to_how_many_there_are(tmp_path: Path) -> None:
    ring = PasskeyRing(tmp_path / "keys")
    for number in range(MAX_PASSKEYS):
        ring.add(Passkey(f"k{number}", bytes([number + 1]), b"key"))
    with pytest.raises(PasskeyError, match="revoke one first"):
        ring.add(ONE)


@proves("GATE-KEY-09")
def test_a_gate_without_passkeys_loads_nothing_for_them() -> None:
    script = "import stringd.gate.app, sys; print(*sys.modules)"
    command = [sys.executable, "-c", script]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    assert "stringd.gate.app" in loaded
    heavy = ("webauthn", "http", "cryptography", "stringd.gate.passkeys")
    assert [each for each in loaded if each.startswith(heavy)] == []
