"""The one door to the network."""

import gzip
import ssl
from pathlib import Path

import pytest

from stringd.net.addresses import Resolved
from stringd.net.fetch import (
    MAX_REDIRECTS,
    MAX_RESPONSE_BYTES,
    AddressRefusedError,
    Fetched,
    Fetcher,
    FetchError,
    FetchRequest,
)
from tests.requirements import proves
from tests.support.certificates import certificate
from tests.support.daemon import WAIT_SECONDS
from tests.support.names import lead
from tests.support.site import RawServer, Script, cut, drip, flood, silence
from tests.support.web import Asked, Reply, WebServer

pytestmark = pytest.mark.anyio


async def fetch(request: FetchRequest, public: tuple[str, ...] = ()) -> Fetched:
    """One fetch; hosts named `public` count as the public internet."""
    fetcher = Fetcher(lambda address: "public" if address in public else "loopback")
    try:
        return await fetcher.fetch(request)
    finally:
        await fetcher.close()


def get(url: str, **options: object) -> FetchRequest:
    return FetchRequest("GET", url, {"Accept": "text/plain"})._replace(**options)  # type: ignore[arg-type]


async def test_an_answer_is_whole(tmp_path_factory: pytest.TempPathFactory) -> None:
    with WebServer(Reply("# Hi", "text/markdown; charset=utf-8")) as web:
        answer = await fetch(get(f"{web.url}/a?b=c#frag"))
        assert (answer.status, answer.text(), answer.public) == (200, "# Hi", False)
        assert answer.content_type == "text/markdown; charset=utf-8"
        assert web.last.target == "/a?b=c"
        assert web.last.headers["host"] == web.url.removeprefix("http://")
        assert web.last.headers["accept"] == "text/plain"


async def test_a_name_with_several_addresses_is_tried_until_one_answers() -> None:
    with WebServer(Reply("here")) as web:
        port = web.url.rpartition(":")[2]
        answer = await fetch(get(f"http://localhost:{port}/"))
        assert answer.text() == "here"
        assert web.last.headers["host"] == f"localhost:{port}"


@proves("WEB-03")
async def test_redirects_are_followed_to_their_final_address() -> None:
    def answer(asked: Asked) -> Reply:
        if asked.target == "/start":
            return Reply(status=302, headers=(("Location", "deep/er/"),))
        if asked.target == "/deep/er/":
            return Reply(status=308, headers=(("Location", "../end"),))
        return Reply("end")

    with WebServer(answer) as web:
        answered = await fetch(get(f"{web.url}/start"))
        assert (answered.url, answered.text()) == (f"{web.url}/deep/end", "end")


async def test_redirects_come_to_an_end() -> None:
    with WebServer(Reply(status=301, headers=(("Location", "/again"),))) as web:
        with pytest.raises(FetchError, match="redirects"):
            await fetch(get(f"{web.url}/"))
        assert len(web.asked) == MAX_REDIRECTS + 1


async def test_a_redirect_to_nowhere_is_an_error() -> None:
    with WebServer(Reply(status=301, headers=(("Location", "http://[bad"),))) as web:
        with pytest.raises(FetchError, match="not an address"):
            await fetch(get(web.url))
        web.answer = Reply(status=301, headers=(("Location", "file:///etc/passwd"),))
        with pytest.raises(FetchError, match="not an http address"):
            await fetch(get(web.url))


async def test_another_host_gets_no_secret_and_a_303_no_body() -> None:
    with WebServer(Reply("end")) as other:
        elsewhere = Reply(status=303, headers=(("Location", f"{other.url}/x"),))
        with WebServer(elsewhere) as web:
            secret = {"Accept": "text/plain", "Authorization": "Bearer s", "Content-Type": "a/b"}
            await fetch(FetchRequest("POST", web.url, secret, b"body"))
            assert web.last.headers["authorization"] == "Bearer s"
        assert (other.last.method, other.last.body) == ("GET", "")
        assert "authorization" not in other.last.headers
        assert "content-type" not in other.last.headers


@proves("WEB-05")
async def test_a_public_page_may_not_redirect_to_a_private_address() -> None:
    with WebServer(Reply("secret")) as inside:
        port = inside.url.rpartition(":")[2]
        there = Reply(status=302, headers=(("Location", f"http://127.0.0.2:{port}/"),))
        with WebServer(there) as web:
            with pytest.raises(FetchError, match=r"private address 127\.0\.0\.2"):
                await fetch(get(web.url), public=("127.0.0.1",))
            assert inside.asked == []


@proves("WEB-05")
async def test_a_private_address_is_reached_only_when_it_was_asked_for() -> None:
    with WebServer(Reply("ok")) as web:
        with pytest.raises(FetchError, match="private"):
            await fetch(get(web.url, may_be_private=False))
        assert web.asked == []
        assert (await fetch(get(web.url))).text() == "ok"
        allowed = await fetch(get(web.url, may_be_private=False), public=("127.0.0.1",))
        assert allowed.public


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "2852039166", "[::ffff:a9fe:a9fe]", "metadata.google.internal"]
)
async def test_a_metadata_service_is_never_asked(host: str) -> None:
    with pytest.raises(AddressRefusedError, match="cloud metadata service"):
        await Fetcher().fetch(get(f"http://{host}/latest"))


async def test_a_hop_can_be_judged_by_the_caller() -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(status=302, headers=(("Location", "/b"),)) if asked.target == "/a" else Reply()

    with WebServer(answer) as web:
        fetcher = Fetcher()
        target = await fetcher.resolve(f"{web.url}/a")
        assert (target.addresses, target.reach) == (("127.0.0.1",), "loopback")
        answered, redirected = await fetcher.exchange(get(f"{web.url}/a"), target)
        assert (answered.status, answered.reason) == (302, "Found")
        assert redirected is not None
        assert redirected.url == f"{web.url}/b"
        assert (await fetcher.exchange(redirected, target))[1] is None
        await fetcher.close()
        assert [asked.target for asked in web.asked] == ["/a", "/b"]


async def test_a_host_in_other_letters_is_named_in_ascii(monkeypatch: pytest.MonkeyPatch) -> None:
    lead(monkeypatch, {"bücher.test": ["127.0.0.1"]})
    with WebServer(Reply("ok")) as web:
        port = web.url.rpartition(":")[2]
        await fetch(get(f"http://bücher.test:{port}/"))
        assert web.last.headers["host"] == f"xn--bcher-kva.test:{port}"


@proves("WEB-04")
@pytest.mark.parametrize("script", [drip, silence])
async def test_a_slow_answer_is_given_up(script: Script) -> None:
    with RawServer(script) as server, pytest.raises(FetchError, match="timed out after"):
        await fetch(get(server.url, timeout=0.5))


@proves("WEB-04")
async def test_an_endless_answer_is_cut() -> None:
    with RawServer(flood) as server:
        answer = await fetch(get(server.url))
        assert answer.truncated
        assert len(answer.body) == MAX_RESPONSE_BYTES
        assert server.gone.wait(WAIT_SECONDS)


@proves("WEB-04")
async def test_a_packed_answer_counts_unpacked() -> None:
    bomb = gzip.compress(b"\0" * (MAX_RESPONSE_BYTES + 1))
    with WebServer(Reply(bomb, headers=(("Content-Encoding", "gzip"),))) as web:
        assert (await fetch(get(web.url))).truncated


async def test_an_answer_that_stops_short_is_an_error() -> None:
    with RawServer(cut) as server, pytest.raises(FetchError):
        await fetch(get(server.url))


@pytest.mark.parametrize("url", ["http://", "http://[x", "http://h:99999/", "ftp://x/", "x"])
async def test_what_is_no_address_is_refused(url: str) -> None:
    with pytest.raises(FetchError, match="not an http address"):
        await fetch(get(url))


async def test_an_unknown_host_is_named() -> None:
    with pytest.raises(FetchError, match=r"cannot resolve nobody\.invalid"):
        await fetch(get("http://nobody.invalid/"))


async def test_cookies_are_not_kept() -> None:
    with WebServer(Reply("x", headers=(("Set-Cookie", "a=b"),))) as web:
        fetcher = Fetcher()
        await fetcher.fetch(get(web.url))
        await fetcher.fetch(get(web.url))
        await fetcher.close()
        assert "cookie" not in web.last.headers


@proves("WEB-07")
def test_text_is_decoded_as_it_declares_itself() -> None:
    answer = Fetched(200, "http://x", "text/plain", "é".encode("latin-1"), "latin-1", True, False)
    assert answer.text() == "é"
    assert answer._replace(charset="no-such", body="é".encode()).text() == "é"
    assert answer._replace(charset=None, body="é".encode()).text() == "é"


async def test_servers_are_told_who_asks_unless_the_request_says_it() -> None:
    with WebServer(Reply("ok")) as web:
        await fetch(get(web.url))
        await fetch(get(web.url)._replace(headers={"user-agent": "mine"}))
        assert [asked.headers["user-agent"] for asked in web.asked] == ["stringd", "mine"]


@pytest.mark.parametrize(
    "charset",
    ["idna", "punycode", "undefined", "unicode_escape", "rot13", "zip", "no-such", "a\0b"],
)
async def test_a_charset_no_page_is_written_in_means_utf8(charset: str) -> None:
    answer = Fetched(200, "http://x.test", "", "Caf\xe9 \\x41".encode(), charset, False, False)
    assert answer.text() == "Caf\xe9 \\x41"


async def test_a_host_is_not_believed_by_the_certificate_of_another_at_its_address(
    tmp_path: Path,
) -> None:
    pem = tmp_path / "first.pem"
    pem.write_bytes(certificate("first.test"))
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(pem)
    fetcher = Fetcher(certificates=ssl.create_default_context(cafile=pem))
    with WebServer(Reply("here"), tls=server) as web:
        for host, believed in (("first", True), ("second", False), ("first", True)):
            request = get(f"https://{host}.test:{web.port}/{host}")
            asking = fetcher.exchange(request, Resolved(("127.0.0.1",), "public"))
            if believed:
                assert (await asking)[0].text() == "here"
            else:
                with pytest.raises(FetchError, match="Hostname mismatch"):
                    await asking
    await fetcher.close()
    assert [asked.target for asked in web.asked] == ["/first", "/first"]
