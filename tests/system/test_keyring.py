"""The system's keyring, through a backend that keeps a file, one that fails and none at all."""

import json
import sys
from pathlib import Path

import keyring
import pytest
from keyring.backends.fail import Keyring as FailingKeyring

from stringd.system.keyring import Keyring, KeyringError, KeyringMissingError
from tests.support.keyring_file import FileKeyring


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    backend = FileKeyring()  # type: ignore[no-untyped-call]
    monkeypatch.setenv("TEST_KEYRING", str(tmp_path / "keyring.json"))
    monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
    return tmp_path / "keyring.json"


def test_a_text_comes_back_and_belongs_to_its_service(kept: Path) -> None:
    Keyring("one").save("entry", "secret")
    assert Keyring("one").load("entry") == "secret"
    assert Keyring("two").load("entry") is None
    assert "secret" in kept.read_text("utf-8")


def test_what_was_read_is_not_asked_for_again(kept: Path) -> None:
    ours = Keyring("one")
    assert ours.load("entry") is None
    ours.save("entry", "secret")
    kept.write_text(json.dumps({}), "utf-8")
    assert ours.load("entry") == "secret"


def test_a_keyring_that_fails_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = FailingKeyring()  # type: ignore[no-untyped-call]
    monkeypatch.setattr(keyring.core, "_keyring_backend", backend)
    with pytest.raises(KeyringError, match="The system keyring cannot be used: "):
        Keyring("one").load("x")
    with pytest.raises(KeyringError, match="The system keyring cannot be used: "):
        Keyring("one").save("x", "y")


def test_without_the_package_the_way_to_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keyring", None)
    with pytest.raises(KeyringMissingError, match=r"pip install 'stringd\[keyring\]'"):
        Keyring("one").load("x")
