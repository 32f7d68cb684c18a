"""Secrets: sent where the author says, shown nowhere."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4

import pytest

from tests.requirements import proves
from tests.runtime.commands.conftest import Caller, StartDaemon
from tests.support.web import Asked, Reply, WebServer

SECRET = "sk-live-0123456789abcdef"


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon) -> Caller:
    return start_daemon(STRINGD_LOG="1")


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


def app(call: Caller, text: str, *servers: WebServer) -> str:
    """Install a document as an app that may reach the servers it names; the topic it runs in."""
    name = f"a{uuid4().hex[:8]}"
    folder = call.home / f"src-{name}"
    folder.mkdir()
    named = {*re.findall(r"127\.0\.0\.1:\d+", text), *(server.host for server in servers)}
    hosts = ", ".join(f"'{host}'" for host in named)
    page = f"---\nname: {name}\ntype: app\nhosts: [{hosts}]\n---\n# App\n{text}"
    (folder / "string.md").write_text(page, encoding="utf-8")
    assert call("file:main", f"/install {folder}").ok
    topic = f"app:{name}"
    assert call(topic, f'/set $API_KEY = "{SECRET}"').content == f'$API_KEY = "sk-…" ({name})'
    return topic


def everything(path: Path) -> str:
    return "\n".join(
        each.read_text(encoding="utf-8", errors="replace")
        for each in path.rglob("*.log*")
        if each.is_file()
    )


@proves("ACT-26")
def test_a_secret_is_sent_and_never_shown(call: Caller, web: WebServer) -> None:
    topic = app(
        call,
        f'```act.get\nGET {web.url}/x?key=$API_KEY -H "X-Key: $API_KEY"\n```\n'
        f"```act.tpl\nGET {web.url}/x?key=$API_KEY\n```\n"
        "```act.tpl.response\n{v} = {Response.body.key}\n{@s} = {Response.body.key}\n"
        "{Response.body.key}\n```\n"
        "```act.cli\nCLI echo \"$API_KEY\" '$API_KEY'\n```\n"
        '```act.fails\nCLI echo "$API_KEY"; exit 2\n```\n',
    )
    replies = []
    for status in (200, 404, 500):
        web.answer = Reply(json.dumps({"key": SECRET}), status=status)
        replies += [call(topic, "/act.get"), call(topic, "/act.tpl")]
        assert web.last.target == f"/x?key={SECRET}"
    web.answer = Reply(f"# Doc {SECRET}\n", "text/markdown")
    replies += [call(topic, "/act.cli"), call(topic, "/act.fails"), call(topic, "/act.get")]
    replies += [call(topic, "/info"), call(topic, "/info @s"), call(topic, "/set")]
    for reply in replies:
        assert SECRET not in reply.content
    assert "sk-…" in replies[0].content
    assert SECRET not in call.request("GET", "/sessions").decode()
    assert SECRET not in everything(call.daemon.data_dir)


def test_a_setting_is_no_secret(call: Caller, web: WebServer) -> None:
    topic = app(
        call,
        f'```act.now\nGET {web.url}/w\n  city: string "City" = "$CITY"\n```\n'
        "```act.now.response\nIn {city} it rains\n```\n"
        '```act.greet\nCLI echo "$CITY"\n```\n',
    )
    call(topic, '/set $CITY = "New York"')
    assert call(topic, "/act.now").content == "In New York it rains"
    assert web.last.target == "/w?city=New+York"
    assert call(topic, "/act.greet").content == "New York"


@proves("ACT-27")
def test_configurations_keep_their_own_values(call: Caller, web: WebServer) -> None:
    topic = app(call, f'```act.now\nGET {web.url}/w\n  city: string = "$CITY"\n```\n')
    call(topic, '/set $CITY = "Base"')
    call(f"{topic}:korea", '/set $CITY = "Seoul"')
    call(f"{topic}:korea", "/act.now")
    assert web.last.target == "/w?city=Seoul"
    call(f"{topic}:other", "/act.now")
    assert web.last.target == "/w?city=Base"
    stored = call.home / "apps" / topic.removeprefix("app:") / "korea" / "env.json"
    assert stored.stat().st_mode & 0o777 == 0o600


@proves("ACT-28")
def test_secrets_do_not_follow_redirects_to_another_host(call: Caller, web: WebServer) -> None:
    with WebServer(Reply("{}")) as other:
        topic = app(
            call,
            f'```act.get\nGET {web.url}/x -H "X-Key: $API_KEY"\n```\n'
            f'```act.post\nPOST {web.url}/x -d \'{{"key":"$API_KEY"}}\'\n```\n',
            other,
        )
        for status in (301, 302, 303, 307, 308):
            web.answer = Reply(status=status, headers=(("Location", f"{other.url}/y"),))
            call(topic, "/act.get")
            assert "x-key" not in other.last.headers
            call(topic, "/act.post")
        assert all(SECRET not in asked.body for asked in other.asked)
        web.answer = Reply(status=308, headers=(("Location", f"{other.url}/y"),))
        assert call(topic, "/act.post").content.startswith(
            "ERROR(LOAD_ERROR): Network error: redirected to 127.0.0.1:"
        )


def test_secrets_follow_redirects_on_the_same_host(call: Caller, web: WebServer) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.target == "/x":
            return Reply(status=302, headers=(("Location", "/y"),))
        return Reply("{}")

    web.answer = answer
    topic = app(call, f'```act.get\nGET {web.url}/x -H "X-Key: $API_KEY"\n```\n')
    assert call(topic, "/act.get").ok
    assert (web.last.target, web.last.headers["x-key"]) == ("/y", SECRET)


@proves("ACT-29")
def test_a_secret_is_not_in_the_command_line(call: Caller) -> None:
    topic = app(
        call,
        "```act.look\nCLI tr '\\0' ' ' </proc/$$/cmdline | grep -c '$API_KEY' || true\n```\n"
        '```act.has\nCLI [ "$API_KEY" = '
        + SECRET[:6]
        + '* ] || test -n "$API_KEY" && echo yes\n```\n',
    )
    assert call(topic, "/act.look").content == "0"
    assert call(topic, "/act.has").content == "yes"


@proves("ACT-30")
def test_missing_requirements_are_announced_and_point_to_the_setup_page(
    call: Caller, web: WebServer
) -> None:
    folder = call.home / uuid4().hex
    folder.mkdir()
    (folder / "requirements.md").write_text("# Setup\n", encoding="utf-8")
    (folder / "page.md").write_text(
        f'---\nrequires: [NEEDED_A]\n---\n# P\n```act.go\nGET {web.url}/x -H "A: $NEEDED_A"\n```\n',
        encoding="utf-8",
    )
    topic = f"file:{uuid4().hex}"
    opened = call(topic, f"/open {folder}/page.md").content
    assert '[!] Missing required env: $NEEDED_A\n    Set: /set $NEEDED_A="..."' in opened
    failed = call(topic, "/act.go").content
    assert failed.startswith(
        "ERROR(INVALID_PAYLOAD): Unresolved environment variable(s):\n  $NEEDED_A"
    )
    assert failed.endswith("\n\nSetup info: /open requirements.md")
    assert call(topic, "/open requirements.md").content.endswith("# Setup")
