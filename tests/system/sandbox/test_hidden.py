"""The list of what is hidden, and of what may be written to."""

import socket
from pathlib import Path

import pytest

from stringd.system.sandbox.hidden import cache_paths, hidden_paths, homes, listening_sockets

NAMED = (
    *(".ssh", ".aws", ".gnupg", ".netrc", ".config/gh", ".local/share/keyrings", ".mozilla"),
    *(".config/google-chrome*", ".config/chromium", ".config/BraveSoftware", ".claude*", ".codex"),
    *(".gemini", ".config/opencode", ".docker", ".kube", ".npmrc", ".pypirc", ".git-credentials"),
    *(".config/gcloud", ".azure", ".string/daemon"),
)


@pytest.mark.parametrize("name", NAMED)
def test_the_usual_homes_of_secrets_are_hidden(name: str, tmp_path: Path) -> None:
    assert f"{tmp_path}/{name}" in hidden_paths({"HOME": str(tmp_path)})


def test_the_home_the_machine_knows_is_covered_whatever_the_environment_says() -> None:
    real = homes({})
    assert real
    assert set(real) < set(homes({"HOME": "/somewhere/else"}))
    assert f"{real[0]}/.ssh" in hidden_paths({"HOME": "/somewhere/else"})


def test_the_owner_adds_paths() -> None:
    environment = {"HOME": "/home/me", "STRINGD_SANDBOX_HIDE": "~/private:/data/keys:relative"}
    found = hidden_paths(environment)
    assert "/home/me/private" in found
    assert "/data/keys" in found
    assert "relative" not in found


def test_a_caller_adds_paths(tmp_path: Path) -> None:
    assert str(tmp_path) in hidden_paths({}, [tmp_path])


def test_the_users_sockets_are_hidden_by_what_the_environment_says() -> None:
    environment = {
        "XDG_RUNTIME_DIR": "/custom/runtime",
        "SSH_AUTH_SOCK": "/custom/agent",
        "DOCKER_HOST": "unix:///custom/docker.sock",
    }
    found = hidden_paths(environment)
    assert {"/run", "/custom/runtime", "/custom/agent", "/custom/docker.sock"} <= set(found)


def test_a_shared_directory_is_not_hidden_for_the_sockets_in_it() -> None:
    found = hidden_paths(
        {"HOME": "/home/me", "XDG_RUNTIME_DIR": "/tmp", "SSH_AUTH_SOCK": "/home/me"}
    )
    assert "/tmp" not in found
    assert "/home/me" not in found


def test_only_caches_that_are_there_are_writable(tmp_path: Path) -> None:
    home = tmp_path.resolve()
    (home / ".cargo/registry").mkdir(parents=True)
    (home / "elsewhere").mkdir()
    (home / ".cache").symlink_to("elsewhere")
    found = [path for path in cache_paths({"HOME": str(home)}) if path.is_relative_to(home)]
    assert found == [home / ".cargo/registry"]


def test_listening_sockets_are_found_by_their_paths(tmp_path: Path) -> None:
    path = tmp_path / "s"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(path))
        listener.listen()
        assert str(path) in listening_sockets()
    assert str(path) not in listening_sockets()
