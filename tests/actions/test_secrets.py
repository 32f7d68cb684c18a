"""Which values are hidden, and in which spellings."""

import json
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.actions.secrets import Mask, is_secret, masked, secrets_in


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("API_KEY", "abcd"),
        ("GITHUB_TOKEN", "x y z w"),
        ("DB_PASSWORD", "hunter2!"),
        ("apikey", "abcd"),
        ("OTHER", "sk-live-0123456789abcdef"),
        ("OTHER", "ghp_0123456789abcdefABCD"),
        ("OTHER", "aB3" * 10),
        ("OTHER", "0123456789abcdef" * 2),
    ],
)
def test_these_are_secrets(name: str, value: str) -> None:
    assert is_secret(name, value)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CITY", "New York"),
        ("API_URL", "http://127.0.0.1:9000/v1"),
        ("REPO", "/tmp/pytest-of-root/pytest-12/repository0"),
        ("OWNER", "octocat/hello-world-2024-final"),
        ("MONKEYS", "three"),
    ],
)
def test_these_are_settings(name: str, value: str) -> None:
    assert not is_secret(name, value)


def test_what_a_header_carries_is_always_a_secret() -> None:
    assert secrets_in({"ID": "abcdef", "K": "abc"}, ["ID", "K"]) == {"ID": "abcdef"}


@given(st.text(st.characters(codec="utf-8"), min_size=4))
def test_a_secret_is_hidden_in_every_spelling(secret: str) -> None:
    mask = Mask([secret])
    for spelling in (secret, quote(secret, safe=""), json.dumps(secret, ensure_ascii=False)[1:-1]):
        assert mask(f"\0{spelling}\0") == f"\0{masked(secret)}\0"


def test_the_longer_secret_wins() -> None:
    assert Mask(["abcd", "abcdef"])("abcdef abcd") == "abc… abc…"
