"""What a proxy understands: tunnels and absolute addresses, and nothing half of them."""

import pytest

from stringd.net.host_proxy import HostListError, hosts_in
from stringd.net.hosts import Host
from stringd.net.proxy_request import ProxyRequest, read_request


def head(*lines: str) -> bytes:
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode()


def test_a_tunnel_names_host_and_port() -> None:
    assert read_request(head("CONNECT Example.com:443 HTTP/1.1", "Host: other")) == ProxyRequest(
        "example.com", 443, b""
    )
    assert read_request(head("CONNECT [::1]:8443 HTTP/1.1")).host == "::1"


@pytest.mark.parametrize(
    ("target", "line"),
    [
        ("http://a.test/x/y?z=http://b.test/", "GET /x/y?z=http://b.test/ HTTP/1.1"),
        ("http://a.test", "GET / HTTP/1.1"),
        ("http://a.test?q=1/2", "GET /?q=1/2 HTTP/1.1"),
    ],
)
def test_a_request_is_passed_on_for_the_host_of_its_address(target: str, line: str) -> None:
    headers = ("Host: other.test", "Proxy-Authorization: x", "Connection: keep-alive", "A: b")
    found = read_request(head(f"GET {target} HTTP/1.1", *headers))
    assert (found.host, found.port) == ("a.test", 80)
    assert found.opening == head(line, "Host: a.test", "A: b", "Connection: close")


@pytest.mark.parametrize(
    "line",
    [
        "GET / HTTP/1.1",
        "GET https://a.test/ HTTP/1.1",
        "GET ftp://a.test/ HTTP/1.1",
        "GET http://listed.test@other.test/ HTTP/1.1",
        "GET http:///x HTTP/1.1",
        "GET http://a.test:99999/ HTTP/1.1",
        "CONNECT a.test HTTP/1.1",
        "CONNECT a.test:1:2 HTTP/1.1",
        "CONNECT  HTTP/1.1",
        "GET http://a.test/ HTTP/2",
        "\xff",
        "",
    ],
)
def test_anything_else_is_refused(line: str) -> None:
    with pytest.raises(ValueError):
        read_request(head(line))


def test_a_list_takes_hosts_and_says_what_is_not_one() -> None:
    found = hosts_in(["A.test", "*.b.test", "127.0.0.1:80", "[::1]:8080", "a.test"])
    assert found == (Host("a.test"), Host("*.b.test"), Host("127.0.0.1", 80), Host("::1", 8080))
    for entry in ("*", "https://a.test", "a.test/x", "me@a.test", ""):
        with pytest.raises(HostListError, match="is not a host: write"):
            hosts_in([entry])
