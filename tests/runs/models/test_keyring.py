"""Credentials in a system keyring, through a daemon and a backend of the keyring project."""

import asyncio
import json
from pathlib import Path

import pytest
from websockets.asyncio.client import connect

from tests.runs.models import servers
from tests.runs.models.servers import model_server
from tests.runs.support import Json, Watcher, sequential, strategy
from tests.support.daemon import Daemon

pytestmark = pytest.mark.anyio

KEY = "sk-kept-in-the-keyring-1234"
STORE = "python_keyring/keyring_pass.cfg"


def daemon_with(tmp_path: Path, backend: str, **environment: str) -> Daemon:
    return Daemon(
        tmp_path,
        STRINGD_SECRETS="keyring",
        PYTHON_KEYRING_BACKEND=backend,
        XDG_DATA_HOME=str(tmp_path / "share"),
        **environment,
    )


def plain(tmp_path: Path, **environment: str) -> Daemon:
    return daemon_with(tmp_path, "keyrings.alt.file.PlaintextKeyring", **environment)


async def ask(daemon: Daemon, type_: str, **fields: object) -> Json:
    async with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as socket:
        return await Watcher(socket).ask(type_, **fields)


async def set_key(daemon: Daemon, provider_id: str = "groq", key: str = KEY) -> Json:
    return await ask(
        daemon, "set_credential", providerId=provider_id, credentialType="api", apiKey=key
    )


async def configured(daemon: Daemon) -> set[str]:
    listed = await ask(daemon, "list_providers")
    return {p["id"] for p in listed["providers"] if p["authStatus"] == "configured"}


def files_with(folder: Path, text: str) -> list[Path]:
    return [p for p in folder.rglob("*") if p.is_file() and text.encode() in p.read_bytes()]


async def test_a_key_lives_in_the_keyring_alone_and_survives_a_restart(tmp_path: Path) -> None:
    daemon = plain(tmp_path)
    with daemon:
        assert (await set_key(daemon))["type"] == "credential_set"
        assert (await set_key(daemon, "mistral", "sk-another-1234"))["type"] == "credential_set"
        assert {"groq", "mistral"} <= await configured(daemon)
    assert (tmp_path / "share" / STORE).exists()
    assert files_with(tmp_path, KEY) == []  # the backend encodes what it keeps
    assert not (daemon.data_dir / "credentials.json").exists()
    with daemon:
        assert {"groq", "mistral"} <= await configured(daemon)


async def test_a_model_is_asked_with_the_key_from_the_keyring(tmp_path: Path) -> None:
    async with model_server(servers.openai_text("hi")) as provider:
        source = strategy(sequential("a"), a={"model": "openai/m"})
        path = tmp_path / "s.json"
        path.write_text(json.dumps(source), "utf-8")
        with plain(tmp_path, OPENAI_BASE_URL=f"{provider.url}/v1", OPENAI_API_KEY="") as daemon:
            await set_key(daemon, "openai")
            async with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as socket:
                messages = await Watcher(socket).run(path, "x")
    assert messages[-1]["result"] == "hi"
    assert provider.asked[0].headers["authorization"] == f"Bearer {KEY}"


async def test_keys_set_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    names = ["groq", "mistral", "cohere", "xai", "deepseek", "openrouter"]
    with plain(tmp_path) as daemon:
        await asyncio.gather(*(set_key(daemon, name) for name in names))
        assert set(names) <= await configured(daemon)


async def test_a_keyring_that_cannot_be_used_is_said_and_stops_nothing_else(tmp_path: Path) -> None:
    with daemon_with(tmp_path, "keyring.backends.fail.Keyring") as daemon:
        answer = await set_key(daemon)
        assert answer["code"] == "INTERNAL_ERROR"
        assert answer["message"].startswith("The system keyring cannot be used: ")
        assert KEY not in json.dumps(answer)
        assert "groq" not in await configured(daemon)
