"""Where keys are found, and that they do not leak."""

import json
from pathlib import Path

import pytest

from stringd.runs.models.credentials import (
    ApiKey,
    Credentials,
    CustomData,
    FileVault,
    OauthToken,
    secret_of,
)
from stringd.runs.models.directory import ProviderDirectory


def credentials(tmp_path: Path, **environ: str) -> Credentials:
    return Credentials(FileVault(tmp_path / "c.json"), environ)


def test_the_environment_wins_over_what_is_kept(tmp_path: Path) -> None:
    store = credentials(tmp_path, OPENAI_API_KEY="from-env", GROQ_API_KEY="")
    store.save("openai", ApiKey("kept-openai"))
    store.save("groq", OauthToken("kept-groq"))
    assert store.find("openai") == ApiKey("from-env")
    assert store.find("groq") == OauthToken("kept-groq")
    assert store.find("mistral") is None


def test_a_scope_wins_over_the_environment(tmp_path: Path) -> None:
    text = '{"Mine": {"openai": {"type": "api", "key": "scoped"}}}'
    (tmp_path / "c.json").write_text(text, "utf-8")
    store = credentials(tmp_path, OPENAI_API_KEY="from-env")
    assert store.find("openai", "Mine") == ApiKey("scoped")
    assert store.find("openai", "$global") == ApiKey("from-env")


@pytest.mark.parametrize("text", ["", "{", "[]", '{"$global": {"x": {"type": "?"}}}'])
def test_a_file_that_makes_no_sense_reads_as_empty(tmp_path: Path, text: str) -> None:
    (tmp_path / "c.json").write_text(text, "utf-8")
    assert credentials(tmp_path).find("x") is None


def test_every_known_secret_is_masked(tmp_path: Path) -> None:
    store = credentials(tmp_path, OPENAI_API_KEY="sk-from-env")
    store.save("a", OauthToken("token-aaaaaa", refresh_token="token-bbbbbb"))
    store.save("b", CustomData({"nested": {"apiKey": "key-cccccc"}}))
    said = "x sk-from-env token-aaaaaa token-bbbbbb key-cccccc y"
    assert store.mask(said) == "x [hidden] [hidden] [hidden] [hidden] y"


def test_only_what_is_known_of_a_credential_is_written(tmp_path: Path) -> None:
    store = credentials(tmp_path)
    store.save("a", OauthToken("token"))
    store.save("b", CustomData({}))
    kept = json.loads((tmp_path / "c.json").read_text("utf-8"))["$global"]
    assert kept["a"] == {"type": "oauth", "accessToken": "token"}
    assert kept["b"] == {"type": "custom", "data": {}}


def test_custom_data_holds_the_key_of_a_server_of_ones_own(tmp_path: Path) -> None:
    directory = ProviderDirectory(tmp_path, environ={})
    data = {"baseURL": "http://models.example/v1", "apiKey": "k"}
    directory.save_credential("mine", CustomData(data))
    access = directory.access("mine")
    assert access is not None
    assert (access.family, access.base_url, access.key) == ("openai", data["baseURL"], "k")
    assert secret_of(CustomData({})) == ""


@pytest.mark.parametrize(
    ("environ", "ready"),
    [
        ({}, False),
        ({"OPENAI_BASE_URL": "http://127.0.0.1:1/v1"}, True),
        ({"OPENAI_BASE_URL": "https://elsewhere.example/v1"}, False),
        ({"OPENAI_API_KEY": "k"}, True),
    ],
)
def test_only_a_server_on_this_machine_needs_no_key(
    tmp_path: Path, environ: dict[str, str], ready: bool
) -> None:
    directory = ProviderDirectory(tmp_path, environ=environ)
    assert (directory.access("openai") is not None) is ready


@pytest.mark.parametrize(
    ("provider_id", "given", "used"),
    [
        ("anthropic", "http://127.0.0.1:1/v1/", "http://127.0.0.1:1"),
        ("anthropic", "http://127.0.0.1:1/proxy", "http://127.0.0.1:1/proxy"),
        ("ollama", "http://127.0.0.1:1", "http://127.0.0.1:1/v1"),
        ("ollama", "http://127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
        ("openai", "http://127.0.0.1:1/api/", "http://127.0.0.1:1/api"),
    ],
)
def test_an_address_may_be_given_with_or_without_its_version(
    tmp_path: Path, provider_id: str, given: str, used: str
) -> None:
    environ = {f"{provider_id.upper()}_BASE_URL": given}
    access = ProviderDirectory(tmp_path, environ=environ).access(provider_id)
    assert access is not None
    assert access.base_url == used
