"""`stringd gate passkeys` lists, and can do nothing else."""

import json
from pathlib import Path

import pytest

from stringd.cli.gate import main
from stringd.gate.passkeys.passkey import Passkey, encode_passkeys
from stringd.gate.settings import PASSKEYS_FILE

ONE = Passkey("laptop", b"1", b"key", 3, "2026-01-01")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("STRINGD_DATA_DIR", str(tmp_path))
    return tmp_path


def test_it_lists_them(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("gate", ["passkeys"]) == 0
    assert "no passkey is registered; at the gate, Enter" in capsys.readouterr().out
    (folder / PASSKEYS_FILE).write_bytes(encode_passkeys([ONE]))
    assert main("gate", ["passkeys"]) == 0
    assert capsys.readouterr().out == f"laptop  {ONE.fingerprint}  added 2026-01-01\n"
    assert main("gate", ["passkeys", "list", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)["passkeys"]
    assert listed == [{"name": "laptop", "key": ONE.fingerprint, "added": "2026-01-01"}]


def test_a_file_that_cannot_be_read_is_named(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / PASSKEYS_FILE).write_text("{")
    assert main("gate", ["passkeys"]) == 1
    assert f"{folder / PASSKEYS_FILE} does not count: it is not JSON" in capsys.readouterr().err


@pytest.mark.parametrize("word", ["add", "revoke", "remove"])
def test_it_changes_nothing(folder: Path, word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main("gate", ["passkeys", word]) != 0
    assert "invalid choice" in capsys.readouterr().err
