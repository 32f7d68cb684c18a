"""The one check of who may talk to us."""

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.server.guard import RequestGuard

guard = RequestGuard(("https://listed.example",))


def passes(host: str | None, origin: str | None = None) -> bool:
    headers = {b"host": host, b"origin": origin}
    sent = {name: text.encode("latin-1") for name, text in headers.items() if text is not None}
    return guard.refusal(sent) is None


@given(st.ip_addresses(v=4), st.integers(0, 65535))
def test_an_address_passes_exactly_when_it_is_loopback(
    address: ipaddress.IPv4Address, port: int
) -> None:
    assert passes(f"{address}:{port}") is address.is_loopback
    assert passes("127.0.0.1", f"http://{address}:{port}") is address.is_loopback


@given(st.text(st.characters(codec="latin-1"), max_size=20))
def test_no_other_name_passes(name: str) -> None:
    text = name.strip().lower()
    # With a port or without one.
    if not any(map(is_local, (text, text.rpartition(":")[0]))):
        assert not passes(name)


def is_local(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@given(st.sampled_from(["127.0.0.1", "localhost", "[::1]"]), st.text("abcdefgh.-@#/?:", min_size=1))
def test_nothing_can_be_hung_on_a_local_name(name: str, tail: str) -> None:
    assert not passes(f"{name}.{tail}")
    assert not passes(f"{tail}@{name}")
    assert not passes("127.0.0.1", f"http://{name}.{tail}")
    assert not passes(f"{name}{tail}a")


@pytest.mark.parametrize(
    "origin", ["https://listed.example", "http://LOCALHOST:1", "https://[::1]"]
)
def test_local_and_listed_origins_pass(origin: str) -> None:
    assert passes("localhost", origin)


def test_the_host_counts_even_for_a_listed_origin() -> None:
    assert not passes("evil.example", "https://listed.example")
    assert not passes(None, "https://listed.example")
