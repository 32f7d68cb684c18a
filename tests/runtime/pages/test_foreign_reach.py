"""How far pages of other people reach: over menus, links and answers, however they are opened."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from stringd.net.fetch import Fetcher
from stringd.runtime.runtime import Answer, Runtime
from stringd.runtime.settings import RuntimeSettings
from stringd.wire.result import response_text
from stringd.wire.topic import parse_topic
from tests.support.person import Person
from tests.support.web import Asked, Reply, WebServer

PRIVATE = "http://127.0.0.2:9/admin"
REFUSED = "a public page may not lead to the private address 127.0.0.2"
PARTS = "[!nav:m]({url}/m)\n[!include:i]({url}/i)\n# Page\n"


class Teller:
    """A user of a runtime for whom 127.0.0.1 is the public internet."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime

    async def __call__(self, text: str) -> str:
        slot = self.runtime.topics.slot("u", parse_topic("main"))
        answer = self.runtime.execute(slot, text)
        result = (answer if isinstance(answer, Answer) else await answer).result
        return response_text(result)


@asynccontextmanager
async def teller(directory: Path) -> AsyncIterator[Teller]:
    home = directory / "home"
    home.mkdir()
    fetcher = Fetcher(lambda address: "public" if address == "127.0.0.1" else "private")
    runtime = Runtime(RuntimeSettings(directory / "data"), fetcher)
    runtime.topics.register("u", str(home), [str(directory)])
    try:
        yield Teller(runtime)
    finally:
        await runtime.close()


def serve(web: WebServer, **texts: str) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(texts.get(asked.target[1:], ""), "text/markdown")

    web.answer = answer


def test_opening_a_clone_asks_no_private_address(
    person: Person, web: WebServer, tmp_path: Path
) -> None:
    serve(web, m="[@x X](x)\n", i="## I\nincluded\n")
    (tmp_path / "a.md").write_text(PARTS.format(url=web.url))
    for command in ("/open ./a.md", "/refresh"):
        said = person.gets(command, cwd=tmp_path)
        assert "it could not be fetched" in said
    assert web.asked == []
    person.put("own.md", PARTS.format(url=web.url))
    assert "included" in person.gets("/open ~/own.md")


@pytest.mark.parametrize(("hosts", "fetched"), [("", False), ("{host}", True)])
def test_opening_an_app_asks_only_private_addresses_it_declares(
    person: Person, web: WebServer, tmp_path: Path, hosts: str, fetched: bool
) -> None:
    serve(web, i="## I\nincluded\n")
    declared = hosts.format(host=web.url.removeprefix("http://"))
    head = f'---\nname: parts\ntype: app\nhosts: ["{declared}"]\n---\n'
    (tmp_path / "string.md").write_text(head + PARTS.format(url=web.url))
    person.gets("/install ./string.md", cwd=tmp_path)
    assert ("included" in person.gets("/open app:parts")) is fetched
    assert bool(web.asked) is fetched


@pytest.mark.anyio
async def test_a_tab_reaches_no_further_than_the_page_whose_link_it_opens(
    tmp_path: Path, web: WebServer
) -> None:
    serve(web, p=f"# P\n[@dev Dev]({PRIVATE})\n[@next Next](q)\n", q="# Q\n")
    async with teller(tmp_path) as say:
        await say(f"/open {web.url}/p")
        assert REFUSED in await say("/open --tab one @dev")
        assert (await say("/open --tab two @next")).startswith(f"Opened {web.url}/q\n")


ANSWERS = """# P
```act.find
GET {url}/found
```
```act.find.response
{{@hit}} = {{Response.body}}
found
```
"""


@pytest.mark.anyio
@pytest.mark.parametrize(
    "found", [PRIVATE, "secret.md", "app:own", "mcp://own/x", "file:///etc/hostname"]
)
async def test_what_a_web_page_left_leads_nowhere_its_own_links_would_not(
    tmp_path: Path, web: WebServer, found: str
) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.target == "/p":
            return Reply(ANSWERS.format(url=web.url), "text/markdown")
        return Reply(found, "text/plain")

    web.answer = answer
    async with teller(tmp_path) as say:
        (tmp_path / "home" / "secret.md").write_text("mine\n")
        (tmp_path / "home" / "here.md").write_text("# Here\n")
        await say(f"/open {web.url}/p")
        assert "found" in await say("/act.find")
        await say("/open ~/here.md")
        said = await say("/open @hit")
        assert REFUSED in said or "only to web addresses" in said


@pytest.mark.anyio
async def test_links_and_answers_of_a_clone_lead_to_no_private_address(
    tmp_path: Path, web: WebServer
) -> None:
    serve(web, found=PRIVATE, n="# N\n")
    clone = tmp_path / "clone"
    clone.mkdir()
    text = (
        ANSWERS.format(url=web.url) + f"[@dev Dev]({PRIVATE})\n[@n N]({web.url}/n)\n[@b B](b.md)\n"
    )
    (clone / "a.md").write_text(text)
    (clone / "b.md").write_text("# B\n")
    async with teller(tmp_path) as say:
        for target in ("@dev", "@hit"):
            await say(f"/open {clone}/a.md")
            await say("/act.find")
            assert REFUSED in await say(f"/open {target}")
        assert (await say("/open @b")).startswith("Opened ")
        await say(f"/open {clone}/a.md")
        assert (await say("/open @n")).startswith(f"Opened {web.url}/n\n")
