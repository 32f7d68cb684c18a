"""Requests that are not about one run."""

from pathlib import Path
from typing import get_args

import pytest

from stringd.runs import RunsConfig, RunService
from stringd.wire.runs.requests import ClientMessage
from tests.requirements import proves
from tests.runs.support import RunsServer, Watcher

pytestmark = pytest.mark.anyio


@proves("RUN-01", "RUN-04")
async def test_ping_is_answered_with_its_id(watcher: Watcher) -> None:
    pong = await watcher.ask("ping")
    assert set(pong) == {"type", "ts", "requestId"}
    await watcher.send("ping")
    assert "requestId" not in await watcher.receive()


def test_every_request_of_the_protocol_has_one_handler(tmp_path: Path) -> None:
    now, later = RunService(RunsConfig(tmp_path, tmp_path))._handlers()
    assert not now.keys() & later.keys()
    assert now.keys() | later.keys() == set(get_args(ClientMessage))


async def test_the_demo_provider_is_listed_and_needs_no_key(watcher: Watcher) -> None:
    providers = (await watcher.ask("list_providers"))["providers"]
    assert ("demo", "none") in [(p["id"], p["credentialType"]) for p in providers]
    models = (await watcher.ask("get_available_models", modelId="ech"))["models"]
    assert ("echo", ["demo"]) in [(model["id"], model["providers"]) for model in models]
    assert (await watcher.ask("register_provider", providerId="demo"))["providerId"] == "demo"
    unknown = await watcher.ask("register_provider", providerId="nobody")
    assert unknown["code"] == "NOT_FOUND"
    gone = await watcher.ask("unregister_provider", providerId="nobody")
    assert gone["type"] == "provider_unregistered"
    assert (await watcher.ask("list_mcp_servers"))["servers"] == []


@pytest.mark.parametrize("kind", ["api", "oauth"])
async def test_a_credential_without_its_secret_is_invalid(watcher: Watcher, kind: str) -> None:
    answer = await watcher.ask("set_credential", providerId="p", credentialType=kind)
    assert answer["code"] == "INVALID_MESSAGE"


async def test_an_unexpected_failure_is_an_internal_error_and_the_connection_lives(
    server: RunsServer, watcher: Watcher, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken() -> None:
        raise RuntimeError("cannot list")

    monkeypatch.setattr(server.service, "summaries", broken)
    answer = await watcher.ask("list_strategies")
    assert (answer["code"], answer["message"]) == ("INTERNAL_ERROR", "cannot list")
    assert (await watcher.ask("ping"))["type"] == "pong"


async def test_a_timeline_is_shown_without_preparing_the_run(
    server: RunsServer, watcher: Watcher
) -> None:
    assert (await watcher.ask("get_timeline", runId="nope"))["code"] == "RUN_NOT_FOUND"
    assert (await watcher.ask("get_timeline", runId="../x"))["code"] == "RUN_NOT_FOUND"
