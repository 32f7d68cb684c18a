"""The table itself, and the hosts it speaks of."""

import pytest

from stringd.actions.hosts import declared_hosts, origin_of
from stringd.actions.network import literal_host, stored_host
from stringd.actions.provenance import (
    ForeignFile,
    HomeFile,
    InstalledApp,
    McpResource,
    Provenance,
    TrustedFile,
    WebPage,
    capabilities,
    command_refusal,
    owner,
    weakest,
)
from stringd.documents import Action
from stringd.net.hosts import Host, WebOrigin

APP, HOME, TRUSTED = InstalledApp("a"), HomeFile(), TrustedFile("/t")
FOREIGN, WEB, MCP = ForeignFile("/my clone/x.md"), WebPage(None), McpResource("m")


@pytest.mark.parametrize(
    ("provenance", "default", "http", "commands", "names", "saves"),
    [
        (APP, "runs", "declared hosts", True, "app", "app data"),
        (HOME, "is named", "anywhere", True, "user", "workspace"),
        (TRUSTED, "is named", "anywhere", True, "user", "workspace"),
        (FOREIGN, "is ignored", "public", False, "none", "nowhere"),
        (WEB, "is ignored", "own origin", False, "none", "nowhere"),
        (MCP, "is ignored", "nowhere", False, "none", "nowhere"),
    ],
)
def test_the_table_is_what_the_documentation_says(
    provenance: Provenance, default: str, http: str, commands: bool, names: str, saves: str
) -> None:
    assert capabilities(provenance) == (default, http, commands, names, saves)


def test_a_document_of_several_parts_is_as_weak_as_its_weakest() -> None:
    strongest_first: list[Provenance] = [APP, HOME, TRUSTED, FOREIGN, WEB, MCP]
    for number, weak in enumerate(strongest_first):
        for strong in strongest_first[: number + 1]:
            assert weakest([strong, weak]) is weakest([weak, strong])
            assert capabilities(weakest([strong, weak])) == capabilities(weak)


def test_every_origin_of_values_has_an_owner_of_its_own() -> None:
    assert owner(HOME) == owner(TRUSTED)
    assert len({owner(each) for each in (APP, HOME, FOREIGN, WEB, MCP, InstalledApp("b"))}) == 6


def test_the_refusal_of_a_file_is_a_line_that_can_be_typed() -> None:
    assert command_refusal(FOREIGN).endswith("stringd trust '/my clone/x.md'")


@pytest.mark.parametrize(
    ("url", "origin"),
    [
        ("http://A.test/x?y#z", WebOrigin("http", "a.test", 80)),
        ("https://a.test.:8443/", WebOrigin("https", "a.test", 8443)),
        ("https://good.test@evil.test/", WebOrigin("https", "evil.test", 443)),
        ("http://[::1]:80/", WebOrigin("http", "::1", 80)),
        ("https://bücher.test/", WebOrigin("https", "xn--bcher-kva.test", 443)),
        ("ftp://a.test/", None),
        ("http://a.test:99999/", None),
        ("http:///x", None),
        ("/relative", None),
    ],
)
def test_an_origin_is_scheme_host_and_port(url: str, origin: WebOrigin | None) -> None:
    assert origin_of(url) == origin


@pytest.mark.parametrize(
    ("entry", "url", "covered"),
    [
        ("a.test", "https://a.test/", True),
        ("A.test.", "http://a.test/", True),
        ("a.test", "https://a.test:8443/", False),
        ("a.test:8443", "https://a.test:8443/", True),
        ("a.test", "https://b.a.test/", False),
        ("a.test", "https://a.test.evil.test/", False),
        ("a.test", "https://a.test@evil.test/", False),
        ("*.a.test", "https://b.a.test/", True),
        ("*.a.test", "https://a.test/", False),
        ("*.a.test", "https://ba.test/", False),
        ("[::1]:80", "http://[::1]/", True),
        ("127.0.0.1:80", "http://127.0.0.1/", True),
        ("$URL", "http://10.0.0.1:99/x", True),
        ("$URL", "http://10.0.0.1/x", False),
        ("$HOST", "https://stored.test/", True),
        ("$MISSING", "https://stored.test/", False),
        ("https://a.test/", "https://a.test/", False),
    ],
)
def test_a_declared_host_covers_its_own_name_and_port(entry: str, url: str, covered: bool) -> None:
    stored = {"URL": "http://10.0.0.1:99/api", "HOST": "stored.test"}
    asked = origin_of(url)
    assert asked is not None
    assert any(host.covers(asked) for host in declared_hosts([entry], stored)) == covered


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("https://a.test/x", Host("a.test", 443)),
        ("http://127.0.0.1:8080?x={x}", Host("127.0.0.1", 8080)),
        ("HTTPS://A.test", Host("a.test", 443)),
        ("https://a.test{path}", None),
        ("https://{host}/", None),
        ("https://a.test:{port}/", None),
        ("https://a.test@{host}/", None),
        ("https://a.test\\@evil.test/", None),
        ("https://a.test$REST", None),
        ("$URL/x", None),
    ],
)
def test_a_literal_host_leaves_nothing_to_a_value(target: str, host: Host | None) -> None:
    assert literal_host(Action("x", "GET", target)) == host


@pytest.mark.parametrize(
    ("target", "host"),
    [
        ("$URL/x", Host("a.test", 8443)),
        ("$URL", Host("a.test", 8443)),
        ("$URL?q={q}", Host("a.test", 8443)),
        ("$URL{path}", None),
        ("$URL.evil.test/", None),
        ("$OTHER/x", None),
        ("{url}/x", None),
        ("https://x.test/$URL", None),
    ],
)
def test_a_stored_address_is_the_users_word_for_its_host(target: str, host: Host | None) -> None:
    assert stored_host(Action("x", "GET", target), {"URL": "https://a.test:8443"}) == host
