"""The list of other machines: what may be in it, and what a changed one says."""

import json
import stat
from pathlib import Path

import pytest

from stringd.gate.hosts import HostEntry, HostError, Hosts, KnownHosts, fingerprint

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJ9DP7yLXWcZ9cVgr6Gz8VZBGVOJ2yTX5Wq0JX8uVx0f"
OTHER = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIMTfVTV9y7q3yM3hRm2wZ0cYzKk4V4l1Vq3yQm3q0Tzz"


def test_what_was_put_is_there_and_only_for_the_owner(tmp_path: Path) -> None:
    path = tmp_path / "new" / "hosts.json"
    hosts = Hosts(path)
    assert hosts.all() == {}
    entry = HostEntry("web1", "alice@10.0.0.5", KEY, 2222, "the shop")
    hosts.put(entry)
    hosts.put(HostEntry("db", "db.example", OTHER))
    assert list(hosts.all()) == ["db", "web1"]
    assert hosts.get("web1") == entry
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    hosts.remove("db")
    assert list(hosts.all()) == ["web1"]
    with pytest.raises(HostError, match="stringd gate hosts add db"):
        hosts.get("db")


@pytest.mark.parametrize("name", ["", "localhost", "local", "-v", "a b", "a/b", "ü", "x" * 65])
def test_a_name_that_could_be_something_else_is_refused(name: str) -> None:
    with pytest.raises(HostError):
        HostEntry(name, "host", KEY)


@pytest.mark.parametrize(
    "destination", ["", "-oProxyCommand=x", "a b", "a@-x", "u@h;x", "@h", "h\n", "ssh://h"]
)
def test_an_address_that_ssh_could_read_as_something_else_is_refused(destination: str) -> None:
    with pytest.raises(HostError):
        HostEntry("web1", destination, KEY)


@pytest.mark.parametrize("key", ["", "ssh-ed25519", "ssh-ed25519 ???", f"{KEY}\nweb2 {OTHER}"])
def test_what_is_not_one_key_is_refused(key: str) -> None:
    with pytest.raises(HostError):
        HostEntry("web1", "h", key)


@pytest.mark.parametrize(
    "text", ["{", "[]", '{"hosts": 1}', '{"hosts": {"a": 1}}', '{"hosts": {"a": {"port": "x"}}}']
)
def test_a_damaged_list_is_said_and_kept(tmp_path: Path, text: str) -> None:
    path = tmp_path / "hosts.json"
    path.write_text(text)
    with pytest.raises(HostError):
        Hosts(path).put(HostEntry("web1", "h", KEY))
    assert path.read_text() == text


def test_an_entry_that_is_not_the_one_of_the_start_says_so(tmp_path: Path) -> None:
    hosts = Hosts(tmp_path / "hosts.json")
    hosts.put(HostEntry("web1", "a", KEY))
    known = KnownHosts(hosts)
    assert known.get("web1")[1] == ""
    hosts.put(HostEntry("web1", "a", KEY, description="only a word"))
    assert known.get("web1")[1] == ""
    hosts.put(HostEntry("web1", "a", OTHER))
    assert "another machine" in known.get("web1")[1]
    hosts.put(HostEntry("web2", "b", KEY))
    assert "added" in known.get("web2")[1]


def test_a_fingerprint_is_the_one_ssh_shows() -> None:
    assert fingerprint(KEY).startswith("ED25519 SHA256:")
    assert json.dumps(fingerprint(KEY)).isascii()
