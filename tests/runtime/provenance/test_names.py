"""Whose values a page sees: the user's, an app's, or none."""

import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.runtime.provenance.support import SECRET, Attempt
from tests.support.commands import run
from tests.support.daemon import Daemon
from tests.support.person import Person
from tests.support.web import Reply, WebServer

OTHER = "sk-other-9876543210fedcba"


def asks(web: WebServer, header: str = "") -> str:
    """A page that sends what it can see."""
    return (
        f"---\n{header}---\n# Asks\n"
        f'```act.get\nGET {web.url}/get -H "X-Key: $API_KEY" -H "X-Token: {{token}}"\n```\n'
        f"```act.tell\nGET {web.url}/tell?v={{v}}\n  v: string\n```\n"
    )


@proves("PRV-12")
def test_secrets_of_an_app_topic_serve_no_other_page_opened_in_it(attempt: Attempt) -> None:
    person, web = attempt.person, attempt.web
    topic = attempt.install()
    person.gets(f'/set $API_KEY = "{OTHER}"', topic)
    person.put("own.md", asks(web))
    person.gets("/open ~/own.md", topic)
    person.gets("/act.get", topic)
    assert web.last.headers["x-key"] == SECRET, "the shared value, not the app's"
    person.gets("/open app:" + attempt.name, topic)
    person.gets("/act.named", topic)
    assert web.last.headers["x-key"] == OTHER
    elsewhere = Attempt(person, attempt.directory / "second", web)
    other_topic = elsewhere.install()
    person.gets(f"/open app:{attempt.name}", other_topic)
    person.gets(f'/set $API_KEY = "{OTHER}-2"', other_topic)
    person.gets("/act.named", other_topic)
    assert web.last.headers["x-key"] == SECRET, "an app has its own values in its own topic only"


@proves("PRV-12")
def test_what_an_apps_answer_set_is_seen_by_the_app_and_the_user_only(
    attempt: Attempt, daemon: Daemon
) -> None:
    person, web = attempt.person, attempt.web
    text = (
        f"---\nname: {attempt.name}\ntype: app\nhosts: ['{web.host}']\n---\n# App\n"
        f"```act.login\nGET {web.url}/login\n```\n"
        "```act.login.response\n{token} = {Response.body.token}\n"
        "{@item} = {Response.body.token}\ndone {token}\n```\n"
        f"```act.use\nGET {web.url}/use?t={{token}}\n```\n"
    )
    path = attempt.file(attempt.directory / "src", text)
    person.gets(f"/install {path}", cwd=path.parent)
    attempt.pages["/login"] = Reply('{"token": "t-1"}')
    topic = f"app:{attempt.name}"
    assert person.gets("/act.login", topic).endswith("done t-1")
    person.gets("/act.use", topic)
    assert web.last.target == "/use?t=t-1"

    page = asks(web).replace(' -H "X-Key: $API_KEY"', "")
    attempt.pages["/page"] = Reply(page, "text/markdown")
    person.gets(f"/open {web.url}/page", topic)
    person.gets("/act.get", topic)
    assert web.last.headers["x-token"] == "{token}"
    person.gets("/act.tell {token}", topic)
    assert "t-1" not in web.last.target
    assert person.fails("/act.tell @item", topic).code == "NOT_FOUND"

    person.put("own.md", page)
    person.gets("/open ~/own.md", topic)
    person.gets("/act.get", topic)
    assert web.last.headers["x-token"] == "t-1"

    person.gets('/set {token} = "mine"', topic)
    person.gets(f"/open {web.url}/page", topic)
    person.gets("/act.get", topic)
    assert web.last.headers["x-token"] == "mine", "what the caller set is everybody's"


@proves("PRV-12", "PRV-18")
def test_values_belong_to_their_app_after_a_restart_too(tmp_path: Path, web: WebServer) -> None:
    with Daemon(tmp_path) as daemon:
        person = Person(daemon.port, "ada", daemon.home)
        attempt = Attempt(person, tmp_path / "src", web)
        text = (
            f"---\nname: {attempt.name}\ntype: app\nhosts: ['{web.host}']\n---\n"
            f"```act.login\nGET {web.url}/login\n```\n"
            "```act.login.response\n{token} = {Response.body.token}\n```\n"
        )
        path = attempt.file(attempt.directory, text)
        person.gets(f"/install {path}", cwd=path.parent)
        attempt.pages["/login"] = Reply('{"token": "t-1"}')
        topic = f"app:{attempt.name}"
        person.gets("/act.login", topic)
        daemon.kill()
        daemon.start()
        page = asks(web).replace(' -H "X-Key: $API_KEY"', "")
        attempt.pages["/page"] = Reply(page, "text/markdown")
        person.gets(f"/open {web.url}/page", topic)
        person.gets("/act.get", topic)
        assert web.last.headers["x-token"] == "{token}"


@proves("PRV-06")
@pytest.mark.parametrize(
    "name",
    ["HOME", "CWD", "CURRENT_FILE", "CURRENT_URI", "CURRENT_TARGET", "STRING_APP_DIR"],
)
def test_a_web_page_does_not_learn_where_the_user_is(attempt: Attempt, name: str) -> None:
    text = f"```act.x\nGET {attempt.web.url}/x?v=${name}\n```\n"
    attempt.pages["/page"] = Reply(text, "text/markdown")
    attempt.person.gets(f"/open {attempt.web.url}/page")
    before = len(attempt.web.asked)
    assert f"${name}" in attempt.person.fails("/act.x").text
    assert len(attempt.web.asked) == before


@proves("PRV-06")
def test_a_default_names_no_file_that_nobody_typed(attempt: Attempt) -> None:
    """A page of a stranger may read what its caller names, not what its author guessed."""
    attempt.person.put("diary.txt", "private")
    text = (
        f'```act.x\nPOST {attempt.web.url}/x -d \'{{"t":"{{f|file}}"}}\'\n'
        '  f: string = "~/diary.txt"\n```\n'
    )
    attempt.pages["/page"] = Reply(text, "text/markdown")
    attempt.person.gets(f"/open {attempt.web.url}/page")
    before = len(attempt.web.asked)
    assert "reads only files that you name" in attempt.person.fails("/act.x").text
    assert len(attempt.web.asked) == before
    attempt.person.gets("/act.x ~/diary.txt")
    assert attempt.web.last.body == '{"t":"private"}'


@proves("PRV-16")
def test_trust_counts_at_once_and_ends_at_once(attempt: Attempt, daemon: Daemon) -> None:
    path = attempt.file(attempt.directory)
    cwd, owner = attempt.directory, {**os.environ, "HOME": str(daemon.directory)}
    attempt.person.gets(f"/open ./{path.name}", cwd=cwd)
    refused = attempt.person.fails("/act.cli", cwd=cwd)
    assert refused.text.endswith(f"type in your own terminal: stringd trust {path}")
    run("stringd", *shlex.split(refused.text.partition("terminal: stringd ")[2]), env=owner)
    assert attempt.person.gets("/act.cli", cwd=cwd) == "ran"
    run("stringd", "trust", "--remove", str(path), env=owner)
    assert attempt.person.fails("/act.cli", cwd=cwd).code == "FILE_NOT_ALLOWED"


SERVER = """
import asyncio
from pathlib import Path

from mcp.server import MCPServer

server = MCPServer("Pages")


@server.resource("pages://one", title="One")
def one() -> str:
    return Path({page!r}).read_text(encoding="utf-8")


asyncio.run(server.run_stdio_async())
"""


@proves("PRV-07", "PRV-01")
def test_an_mcp_resource_sends_and_runs_nothing(attempt: Attempt) -> None:
    page = attempt.file(attempt.directory)
    server = attempt.directory / "server.py"
    server.write_text(SERVER.format(page=str(page)), encoding="utf-8")
    person = attempt.person
    person.gets(f"/install --mcp {attempt.name} -- {sys.executable} {server}")
    person.gets("/open", f"app:{attempt.name}")
    tried = attempt.try_everything(f"app:{attempt.name}", "/open @doc-1")
    assert "# Page" in tried.opened.text
    assert not tried.ran_default
    assert not tried.ran_command
    assert tried.sent == {}
    assert "has no origin" in tried.replies["plain"].text
    assert not tried.saved


@proves("PRV-05")
def test_a_web_page_does_not_open_what_mounted_servers_have(attempt: Attempt) -> None:
    attempt.pages["/page"] = Reply("[@doc Doc](mcp://sums/sums://about)\n", "text/markdown")
    attempt.person.gets(f"/open {attempt.web.url}/page")
    refused = attempt.person.fails("/open @doc")
    assert refused.code == "FILE_NOT_ALLOWED"


def test_links_of_an_mcp_resource_lead_only_to_public_addresses_and_its_own_server(
    attempt: Attempt, web: WebServer
) -> None:
    person = attempt.person
    person.put("mine.md", "private text\n")
    links = {
        "near": f"{web.url}/near",
        "file": f"file://{person.home}/mine.md",
        "path": "mine.md",
        "app": f"app:{attempt.name}",
        "else": "mcp://another/pages://one",
        "again": f"mcp://{attempt.name}/pages://one",
    }
    page = attempt.directory / "links.md"
    page.write_text("# Links\n" + "".join(f"[@{n} {n}]({t})\n" for n, t in links.items()))
    server = attempt.directory / "server.py"
    server.write_text(SERVER.format(page=str(page)), encoding="utf-8")
    person.gets(f"/install --mcp {attempt.name} -- {sys.executable} {server}")
    topic = f"app:{attempt.name}"
    person.gets("/open", topic)
    person.gets("/open @doc-1", topic)
    for name in ("near", "file", "path", "app", "else"):
        for command in (f"/open @{name}", f"/open --tab tab-{name} @{name}"):
            said = person.fails(command, topic)
            assert "may link only to" in said.text or "may not lead to the private" in said.text
    assert person.gets("/open @again", topic).startswith(f"Opened {links['again']}\n")
    assert web.asked == []
