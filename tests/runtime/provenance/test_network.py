"""Where requests may go: declared hosts, own origin, public addresses, never the daemon itself."""

import json
from pathlib import Path

import pytest

from stringd.net.fetch import Fetcher
from stringd.runtime.runtime import Answer, Runtime
from stringd.runtime.settings import RuntimeSettings
from stringd.runtime.topics.call import Caller
from stringd.wire.result import response_text
from stringd.wire.topic import parse_topic
from tests.requirements import proves
from tests.runtime.provenance.support import SECRET, Attempt
from tests.support.daemon import Daemon, free_port
from tests.support.person import Person, Said
from tests.support.web import Reply, WebServer


def app(attempt: Attempt, text: str, hosts: str | None) -> str:
    """Install an app that declares hosts, or none; its topic."""
    declared = "" if hosts is None else f"hosts: {hosts}\n"
    page = f"---\nname: {attempt.name}\ntype: app\n{declared}---\n# App\n{text}"
    path = attempt.file(attempt.directory / "src", page)
    attempt.person.gets(f"/install {path}", cwd=path.parent)
    attempt.person.gets(f'/set $API_KEY = "{SECRET}"', f"app:{attempt.name}")
    return f"app:{attempt.name}"


def called(attempt: Attempt, topic: str, command: str) -> tuple[Said, int]:
    """The reply to a command, and how many requests it made."""
    before = len(attempt.web.asked)
    said = attempt.person.says(command, topic)
    return said, len(attempt.web.asked) - before


FREE = """
```act.get
GET http://127.0.0.1:{port}/x -H "X-Key: $API_KEY"
  port: number (required)
```
"""


@proves("PRV-08")
def test_a_callers_address_gets_no_secret_unless_it_is_declared(attempt: Attempt) -> None:
    topic = app(attempt, FREE, f"['{attempt.web.host}']")
    attempt.person.gets(f"/act.get {attempt.web.port}", topic)
    assert attempt.web.last.headers["x-key"] == SECRET
    with WebServer() as other:
        said, _ = called(attempt, topic, f"/act.get {other.port}")
        assert said.code == "FILE_NOT_ALLOWED"
        assert f"hosts: [{other.host}]" in said.text
        assert other.asked == []


@proves("PRV-08")
@pytest.mark.parametrize("hosts", ["[]", "[api.example.com]", "['127.0.0.1']", "['127.0.0.1:1']"])
def test_what_is_not_declared_is_not_reached(attempt: Attempt, hosts: str) -> None:
    topic = app(attempt, f'```act.get\nGET {attempt.web.url}/x -H "X: $API_KEY"\n```\n', hosts)
    said, requests = called(attempt, topic, "/act.get")
    assert (said.code, requests) == ("FILE_NOT_ALLOWED", 0)


@proves("PRV-08")
def test_a_private_address_has_to_be_declared(attempt: Attempt) -> None:
    topic = app(attempt, f"```act.get\nGET {attempt.web.url}/x\n```\n", None)
    said, requests = called(attempt, topic, "/act.get")
    assert (said.code, requests) == ("FILE_NOT_ALLOWED", 0)
    assert f"hosts: [{attempt.web.host}]" in said.text


@proves("PRV-08")
@pytest.mark.parametrize("hosts", [None, "[$SHOP_URL]"])
def test_an_address_the_user_stored_is_the_users_word(attempt: Attempt, hosts: str | None) -> None:
    topic = app(attempt, '```act.get\nGET $SHOP_URL/x -H "X-Key: $API_KEY"\n```\n', hosts)
    attempt.person.gets(f'/set $SHOP_URL = "{attempt.web.url}"', topic)
    _, requests = called(attempt, topic, "/act.get")
    assert requests == 1
    assert attempt.web.last.headers["x-key"] == SECRET


@proves("PRV-08")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_leads_an_app_to_no_private_address_it_did_not_declare(
    attempt: Attempt, status: int
) -> None:
    with WebServer() as other:
        text = f'```act.get\nGET {attempt.web.url}/moved -H "X: $API_KEY"\n```\n'
        topic = app(attempt, text, f"['{attempt.web.host}']")
        moved = Reply(status=status, headers=(("Location", f"{other.url}/y"),))
        attempt.pages["/moved"] = moved
        said, requests = called(attempt, topic, "/act.get")
        assert (said.code, requests, other.asked) == ("FILE_NOT_ALLOWED", 1, [])


@proves("PRV-05")
@pytest.mark.parametrize("spelling", ["http://localhost:{port}", "http://127.0.0.1:{other}"])
def test_another_host_or_port_is_another_origin(attempt: Attempt, spelling: str) -> None:
    with WebServer() as other:
        url = spelling.format(port=attempt.web.port, other=other.port)
        text = f"```act.get\nGET {url}/x\n```\n```act.post\nPOST {url}/x -d '{{}}'\n```\n"
        attempt.pages["/page"] = Reply(text, "text/markdown")
        attempt.person.gets(f"/open {attempt.web.url}/page")
        for action in ("/act.get", "/act.post"):
            said, requests = called(attempt, "file:main", action)
            assert (said.code, requests, other.asked) == ("FILE_NOT_ALLOWED", 0, [])
            assert f"may only be sent to {attempt.web.url}" in said.text


@proves("PRV-05")
@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_web_pages_action_is_not_sent_on_to_a_private_origin(
    attempt: Attempt, status: int
) -> None:
    with WebServer() as other:
        text = f"```act.post\nPOST {attempt.web.url}/moved -d '{{\"a\":1}}'\n```\n"
        attempt.pages["/page"] = Reply(text, "text/markdown")
        moved = Reply(status=status, headers=(("Location", f"{other.url}/y"),))
        attempt.pages["/moved"] = moved
        attempt.person.gets(f"/open {attempt.web.url}/page")
        said, requests = called(attempt, "file:main", "/act.post")
        assert (said.head["ok"], requests, other.asked) == (False, 1, [])


SPELLINGS = [
    "127.0.0.1",
    "localhost",
    "127.1",
    "0x7f.1",
    "2130706433",
    "0",
    "0.0.0.0",
    "[::ffff:127.0.0.1]",
    "127.0.0.1.",
    "LOCALHOST",
]


@proves("PRV-14")
@pytest.mark.parametrize("spelling", SPELLINGS)
def test_no_spelling_leads_to_the_daemon(attempt: Attempt, daemon: Daemon, spelling: str) -> None:
    url = f"http://{spelling}:{daemon.port}"
    person = attempt.person
    said = person.fails(f"/open {url}/health")
    assert "it is never fetched" in said.text or "cannot resolve" in said.text
    assert '"ok"' not in said.text
    said = person.fails(f"/install --app {url}/health")
    assert "it is never fetched" in said.text or "cannot resolve" in said.text


@proves("PRV-14")
def test_actions_menus_includes_redirects_and_mounts_do_not_reach_the_daemon(
    attempt: Attempt, daemon: Daemon
) -> None:
    person, own = attempt.person, f"http://127.0.0.1:{daemon.port}"
    person.put(
        "page.md",
        f"[!nav:m]({own}/health)\n# P\n\n[!include:i]({own}/health)\n\n"
        f"```act.get\nGET {own}/health\n```\n"
        f"```act.shut\nPOST {own}/shutdown -d '{{}}'\n```\n"
        f"```act.moved\nPOST {attempt.web.url}/moved -d '{{}}'\n```\n",
    )
    opened = person.gets("/open page.md")
    assert "could not be fetched" in opened
    assert '"ok"' not in opened
    attempt.pages["/moved"] = Reply(status=302, headers=(("Location", f"{own}/shutdown"),))
    attempt.pages["/to"] = Reply(status=302, headers=(("Location", f"{own}/health"),))
    for command in ("/act.get", "/act.shut", "/act.moved", f"/open {attempt.web.url}/to"):
        assert "it is never fetched" in person.fails(command).text
    topic = app(attempt, f"```act.x\nGET {own}/health\n```\n", f"['127.0.0.1:{daemon.port}']")
    assert "it is never fetched" in person.fails("/act.x", topic).text
    assert "it is never fetched" in person.fails(f"/install --mcp self {own}/mcp").text
    assert person.gets("/info")


@proves("PRV-14")
def test_the_port_for_runs_is_the_daemons_own_too(tmp_path: Path) -> None:
    port = free_port()
    with Daemon(tmp_path, "--runs-port", str(port)) as daemon:
        person = Person(daemon.port, "ada", daemon.home)
        assert "it is never fetched" in person.fails(f"/open http://localhost:{port}/health").text


async def say(runtime: Runtime, text: str, cwd: Path) -> str:
    """Run a command in-process, where 127.0.0.1 can be made to count as the public internet."""
    slot = runtime.topics.slot("u", parse_topic("main"))
    answer = runtime.execute(slot, text, Caller(str(cwd)))
    result = (answer if isinstance(answer, Answer) else await answer).result
    return response_text(result)


@proves("PRV-15")
@pytest.mark.anyio
async def test_a_clone_reaches_public_addresses_without_names(
    tmp_path: Path, web: WebServer
) -> None:
    clone, home = tmp_path / "clone", tmp_path / "home"
    clone.mkdir()
    home.mkdir()
    (home / "config.json").write_text(json.dumps({"env": {"API_KEY": SECRET}}), encoding="utf-8")
    private = "http://127.0.0.2:9/x"
    web.answer = lambda asked: (
        Reply(status=302, headers=(("Location", private),))
        if asked.target == "/moved"
        else Reply("{}")
    )
    (clone / "page.md").write_text(
        f"```act.get\nGET {web.url}/x\n```\n"
        f'```act.named\nGET {web.url}/x -H "X: $API_KEY"\n```\n'
        f"```act.moved\nGET {web.url}/moved\n```\n"
        f"```act.private\nGET {private}\n```\n",
        encoding="utf-8",
    )
    fetcher = Fetcher(lambda address: "public" if address == "127.0.0.1" else "private")
    runtime = Runtime(RuntimeSettings(tmp_path / "data"), fetcher)
    runtime.topics.register("u", str(home))
    try:
        assert (await say(runtime, "/open ./page.md", clone)).startswith("Opened ")
        assert await say(runtime, "/act.get", clone) == "{}"
        assert len(web.asked) == 1
        assert "$API_KEY" in await say(runtime, "/act.named", clone)
        assert len(web.asked) == 1
        for action in ("/act.moved", "/act.private"):
            assert "private address" in await say(runtime, action, clone)
    finally:
        await runtime.close()


@proves("PRV-15")
@pytest.mark.anyio
async def test_a_public_page_whose_name_moved_inwards_is_not_asked(
    tmp_path: Path, web: WebServer
) -> None:
    """Its actions go to its own origin, which is a private address by now."""
    web.answer = Reply(f"```act.get\nGET {web.url}/x\n```\n", "text/markdown")
    reach = ["public"]
    fetcher = Fetcher(lambda _address: "public" if reach == ["public"] else "private")
    runtime = Runtime(RuntimeSettings(tmp_path / "data"), fetcher)
    (tmp_path / "home").mkdir()
    runtime.topics.register("u", str(tmp_path / "home"))
    try:
        await say(runtime, f"/open {web.url}/page", tmp_path)
        reach[:] = ["private"]
        asked = len(web.asked)
        assert "private address" in await say(runtime, "/act.get", tmp_path)
        assert len(web.asked) == asked
    finally:
        await runtime.close()
