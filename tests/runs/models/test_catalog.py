"""What is known about models: bundled, refreshed, and asked of the providers themselves."""

import asyncio
import json
import time
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest
from websockets.sync.client import connect

from stringd.runs.models.catalog import Catalog, price_of
from stringd.runs.models.credentials import ApiKey, CustomData, OauthToken
from stringd.runs.models.directory import ProviderDirectory
from stringd.runs.models.providers import KNOWN
from tests.requirements import proves
from tests.runs.models.servers import Reply, model_server
from tests.runs.support import Json, sequential, serving, strategy
from tests.support import web
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import request
from tests.support.web import Asked, WebServer

NEW = {
    "acme": {
        "name": "Acme",
        "models": {
            "rocket-1": {
                "name": "Rocket",
                "limit": {"context": 1000, "input": 900, "output": 100},
                "modalities": {"input": ["text", "image", "smell"], "output": ["text"]},
                "tool_call": True,
                "status": "retired",
                "cost": {"input": 1, "output": 2, "cache_read": 0.1},
            }
        },
    }
}


def write_cache(folder: Path, content: Any) -> Path:
    path = folder / "cache" / "models-catalog.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(content), "utf-8")
    return path


def test_every_bundled_provider_is_one_we_can_talk_to(tmp_path: Path) -> None:
    catalog = Catalog(tmp_path / "none")
    assert set(catalog.provider_ids) <= set(KNOWN)
    assert len(catalog.models("openai")) > 50
    for provider in catalog.provider_ids:
        for model in catalog.models(provider):
            price = price_of(model)
            assert price is None or (price.input >= 0 and price.output >= 0)


def test_a_newer_catalog_is_mapped_to_the_protocols_form(tmp_path: Path) -> None:
    catalog = Catalog(write_cache(tmp_path, {"fetchedAt": 1, "data": NEW}))
    model = catalog.model("acme", "rocket-1")
    assert model is not None
    assert (model.context_window, model.max_input_tokens, model.max_output_tokens) == (
        1000,
        900,
        100,
    )
    assert model.modalities == {"input": ["text", "image"], "output": ["text"]}
    assert model.capabilities == {"tools": True, "vision": True}
    assert model.cost == {"input": 1.0, "output": 2.0, "cacheRead": 0.1}
    assert not isinstance(model.status, str)
    assert catalog.providers_of("gpt-4o") == ["openai"]


@pytest.mark.parametrize(
    "data",
    [
        None,
        5,
        {"x": None},
        {"x": {"models": []}},
        {"x": {"models": {"m": 1}}},
        {"x": {"models": {"m": {"limit": [], "cost": 1, "modalities": [], "status": {}}}}},
        {"x": {"models": {"m": {"modalities": {"input": [{}, []]}, "cost": {"input": "1"}}}}},
    ],
)
def test_a_catalog_of_any_form_can_be_listed(tmp_path: Path, data: Any) -> None:
    catalog = Catalog(write_cache(tmp_path, {"data": data}))
    assert all(catalog.models(each) is not None for each in catalog.provider_ids)


async def catalog_server(tmp_path: Path, body: bytes, **how: Any) -> tuple[Json | None, int]:
    """What a refresh leaves in the cache, and how often the server was asked."""
    async with model_server(Reply([body], content_type="application/json", **how)) as server:
        directory = ProviderDirectory(tmp_path, environ={}, catalog_url=f"{server.url}/api.json")
        assert directory.catalog.model("groq", "rocket-1") is None
        thread = directory.renew_catalog()
        if thread is not None:
            await joined(thread)
        path = tmp_path / "cache" / "models-catalog.json"
        found = directory.catalog.model("groq", "rocket-1")
        kept: Json | None = json.loads(path.read_bytes()) if path.exists() else None
        assert (found is not None) is (kept is not None)
        return kept, len(server.asked)


async def joined(thread: Thread) -> None:
    await asyncio.to_thread(thread.join, WAIT_SECONDS)
    assert not thread.is_alive()


@proves("RUN-44")
@pytest.mark.anyio
async def test_a_refresh_is_kept_for_a_day(tmp_path: Path) -> None:
    fetched = {"groq": NEW["acme"], **NEW, "broken": 5}
    kept, asked = await catalog_server(tmp_path, json.dumps(fetched).encode())
    assert kept is not None
    assert kept["data"] == {"groq": NEW["acme"]}
    assert abs(kept["fetchedAt"] / 1000 - time.time()) < 3600
    assert asked == 1
    directory = ProviderDirectory(tmp_path, environ={}, catalog_url="http://127.0.0.1:9/")
    assert directory.renew_catalog() is None
    write_cache(tmp_path, {**kept, "fetchedAt": kept["fetchedAt"] - 25 * 3600 * 1000})
    assert directory.renew_catalog() is None
    directory = ProviderDirectory(tmp_path, environ={}, catalog_url="http://127.0.0.1:9/")
    thread = directory.renew_catalog()
    assert thread is not None
    await joined(thread)
    assert directory.catalog.model("groq", "rocket-1") is not None


@pytest.mark.anyio
@pytest.mark.parametrize(
    ("body", "how"),
    [
        (b"{", {}),
        (b"[]", {}),
        (b"\xff\xfe", {}),
        (b"{}", {"status": "500 Oops"}),
        (b'{"acme": ', {"cut": True}),
    ],
)
async def test_a_refresh_that_fails_changes_nothing(
    tmp_path: Path, body: bytes, how: dict[str, Any]
) -> None:
    assert await catalog_server(tmp_path, body, **how) == (None, 1)


@pytest.mark.anyio
async def test_a_daemon_does_not_end_in_the_middle_of_a_refresh(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stringd.runs.models.directory._RENEWAL_SECONDS", WAIT_SECONDS)
    directory = ProviderDirectory(tmp_path, environ={}, catalog_url="https://127.0.0.1:9/")
    thread = directory.renew_catalog()
    assert thread is not None
    await directory.close()
    assert not thread.is_alive()


def test_the_first_who_comes_for_runs_has_the_catalog_fetched_once(tmp_path: Path) -> None:
    asked = Event()

    def answer(_: Asked) -> web.Reply:
        asked.set()
        return web.Reply("{}")

    with (
        WebServer(answer) as site,
        Daemon(tmp_path, STRINGD_MODEL_CATALOG=f"{site.url}/api.json") as daemon,
    ):
        assert request(daemon.port, "GET", "/health").status == 200
        assert site.asked == []
        for _ in range(2):
            with connect(f"ws://127.0.0.1:{daemon.port}/ws", proxy=None) as client:
                client.ping().wait(WAIT_SECONDS)
            assert asked.wait(WAIT_SECONDS)
        assert len(site.asked) == 1
        assert daemon.stop() == 0


def test_without_leave_nothing_is_fetched(tmp_path: Path) -> None:
    assert ProviderDirectory(tmp_path, environ={}).renew_catalog() is None


async def listed(directory: ProviderDirectory, provider_id: str) -> Any:
    infos = await directory.infos(None, ask=True)
    return next(info for info in infos if info.id == provider_id)


@proves("RUN-45")
@pytest.mark.anyio
async def test_a_server_of_ones_own_says_what_it_offers(tmp_path: Path) -> None:
    models = {"object": "list", "data": [{"id": "zeta"}, {"id": "gpt-4o"}]}
    reply = Reply([json.dumps(models).encode()], content_type="application/json")
    async with model_server(reply) as server:
        environ = {"OPENAI_BASE_URL": f"{server.url}/v1", "OPENAI_API_KEY": "sk-live-123456"}
        directory = ProviderDirectory(tmp_path, environ=environ)
        openai = await listed(directory, "openai")
        assert (openai.models_source, [m.id for m in openai.models]) == (
            "merged",
            ["gpt-4o", "zeta"],
        )
        assert openai.models[0].context_window == 128000
        assert server.asked[0].path == "/v1/models"
        assert server.asked[0].headers["authorization"] == "Bearer sk-live-123456"
        directory.save_credential("mine", CustomData({"baseURL": f"{server.url}/mine"}))
        mine = await listed(directory, "mine")
        assert (mine.models_source, mine.credential_type, mine.auth_status) == (
            "live",
            "custom",
            "configured",
        )
        assert {each.path for each in server.asked} == {"/v1/models", "/mine/models"}
    available = await directory.available("zeta", None)
    assert available == []


@pytest.mark.anyio
async def test_copilot_lists_what_its_picker_shows(tmp_path: Path) -> None:
    models = {
        "data": [
            {"id": "b", "model_picker_enabled": True},
            {"id": "hidden", "model_picker_enabled": False},
            {"id": "off", "model_picker_enabled": True, "policy": {"state": "disabled"}},
            {"id": "a", "model_picker_enabled": True, "policy": {"state": "enabled"}},
        ]
    }
    reply = Reply([json.dumps(models).encode()], content_type="application/json")
    async with model_server(reply) as server:
        directory = ProviderDirectory(tmp_path, environ={})
        data = {"baseURL": server.url, "apiKey": "gho-123456"}
        directory.save_credential("github-copilot", CustomData(data))
        copilot = await listed(directory, "github-copilot")
    assert [model.id for model in copilot.models] == ["a", "b"]
    assert copilot.models_source == "live"
    assert server.asked[0].headers["authorization"] == "Bearer gho-123456"


@proves("RUN-45")
@pytest.mark.anyio
@pytest.mark.parametrize("provider_id", ["openai", "ollama"])
async def test_a_list_that_cannot_be_had_is_an_error_beside_the_catalog(
    tmp_path: Path, provider_id: str
) -> None:
    environ = {
        "OPENAI_BASE_URL": "http://127.0.0.1:9/v1?key=sk-in-the-address",
        "OPENAI_API_KEY": "sk-in-the-address",
        "OLLAMA_BASE_URL": "http://127.0.0.1:9/v1",
    }
    directory = ProviderDirectory(tmp_path, environ=environ)
    info = await listed(directory, provider_id)
    assert info.models_source == ("catalog" if provider_id == "openai" else "error")
    assert info.error
    assert "sk-in-the-address" not in info.error
    assert not isinstance(info.fetched_at, str)


@pytest.mark.anyio
async def test_a_provider_nobody_knows_the_address_of_is_named(tmp_path: Path) -> None:
    async with serving(tmp_path) as server:
        directory = server.service.models.directory
        assert directory is not None
        directory.save_credential("acme", ApiKey("sk-acme-123456"))
        directory.save_credential("github-copilot", OauthToken("t-123456"))
        watcher = await server.watcher()
        source = strategy(sequential("a"), a={"model": "acme/rocket-1"})
        messages = await watcher.run(server.strategy(source), "x")
    assert 'Provider resolution failed for "acme": ' in messages[-1]["error"]["message"]
