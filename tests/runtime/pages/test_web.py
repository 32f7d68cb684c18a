"""Documents from the web, through a real daemon and a real server."""

import json
from pathlib import Path

import pytest

from stringd.net.fetch import Fetcher
from stringd.runtime.runtime import Answer, Runtime
from stringd.runtime.settings import RuntimeSettings
from stringd.wire.result import response_text
from stringd.wire.topic import parse_topic
from tests.requirements import proves
from tests.support.daemon import Daemon, free_port
from tests.support.person import Person
from tests.support.site import RawServer, cut
from tests.support.web import Asked, Reply, WebServer

HTML = (
    "<html><head><title>T</title></head><body><nav>menu</nav><main><h1>Hi</h1>"
    "<p>Some <b>bold</b> <a href='sub/a.md'>A</a> <a href='https://out.test/'>Out</a></p>"
    "</main></body></html>"
)
CONVERTED = (
    "Source: HTML auto-converted to markdown — the site does not serve text/markdown natively"
)


def pages(**texts: str) -> "dict[str, Reply]":
    return {f"/{name}": Reply(text, "text/markdown") for name, text in texts.items()}


def serve(web: WebServer, found: dict[str, Reply]) -> None:
    def answer(asked: Asked) -> Reply:
        return found.get(asked.target.partition("?")[0], Reply("no", "text/plain", 404))

    web.answer = answer


def test_markdown_opens_as_it_is_with_its_menus_and_includes(
    person: Person, web: WebServer
) -> None:
    page = "---\ntitle: Web\n---\n# W\n\n[!nav:main](nav/m.md)\n\n[!include:b](part.md)\n"
    found = {
        "/docs/w": Reply(page, "text/markdown"),
        "/docs/nav/m.md": Reply("[@a A](../a.md#x)\n", "text/plain"),
        "/docs/part.md": Reply("<!-- #b -->\nPart.\n<!-- /b -->\n", "text/plain"),
        "/docs/a.md": Reply("# A\n\n## X\n\nx\n", "text/plain"),
    }
    serve(web, found)
    said = person.says(f"/open {web.url}/docs/w", "web:x")
    assert said.text == (
        f"Opened {web.url}/docs/w\n---\n[nav] main — first view\n[A][@main.a]\n\n# W\n\n\nPart."
    )
    assert said.meta["title"] == "Web"
    assert web.asked[0].headers["accept"] == "application/json, text/markdown, text/plain"
    assert person.gets("/open @main.a", "web:x") == (
        f"Opened {web.url}/docs/a.md#x\n---\n## X\n\nx"
    )
    assert person.gets("/back", "web:x").startswith(f"Back to {web.url}/docs/w\n---\n[nav] main")


@proves("WEB-02", "CMD-27")
def test_html_is_converted_and_announced(person: Person, web: WebServer) -> None:
    serve(web, {"/p/": Reply(HTML, "text/html; charset=utf-8"), **pages(**{"p/sub/a.md": "# A"})})
    assert person.gets(f"/open {web.url}/p/") == (
        f"Opened {web.url}/p/\n{CONVERTED}\n---\n# Hi\n\nSome **bold** [A](sub/a.md) [Out][@out]"
    )
    assert person.gets("/source") == f"[source: {web.url}/p/]\n---\n{HTML}"
    assert person.says("/info").meta["converted"] is True
    assert person.gets("/open sub/a.md") == f"Opened {web.url}/p/sub/a.md\n---\n# A"
    assert person.gets("/open /p/").startswith(f"Opened {web.url}/p/\n")


@proves("WEB-03")
def test_relative_links_start_at_the_final_address(person: Person, web: WebServer) -> None:
    moved = Reply(status=302, headers=(("Location", "/new/place"),))
    serve(web, {"/old": moved, **pages(**{"new/place": "[@n N](next)", "new/next": "# Next"})})
    assert person.gets(f"/open {web.url}/old").startswith(f"Opened {web.url}/new/place\n")
    assert person.gets("/open @n") == f"Opened {web.url}/new/next\n---\n# Next"


@proves("WEB-01")
def test_failures_have_their_own_messages(person: Person, web: WebServer) -> None:
    serve(web, {"/500": Reply("x", status=500), "/304": Reply("", status=304)})
    missing = person.fails(f"/open {web.url}/none")
    assert missing.text == (
        f"ERROR(NOT_FOUND): Not found: {web.url}/none\n"
        "Recovery: Verify the URL spelling, scheme, and path. "
        "Use /info to see shortcuts on the current page."
    )
    for status in ("500", "304"):
        refused = person.fails(f"/open {web.url}/{status}")
        assert refused.text == (f"ERROR(LOAD_ERROR): HTTP {status} fetching {web.url}/{status}")
    with RawServer(cut) as server:
        refused = person.fails(f"/open {server.url}/")
        assert refused.code == "LOAD_ERROR"
        assert refused.message.startswith(f"Network error fetching {server.url}/: ")
    nobody = f"http://127.0.0.1:{free_port()}/"
    assert person.fails(f"/open {nobody}").message.startswith(f"Network error fetching {nobody}: ")


@proves("WEB-09")
@pytest.mark.parametrize(("links", "more"), [(3, ""), (12, ", +4 more (run /info)")])
def test_a_missing_page_names_shortcuts_of_this_one(
    person: Person, web: WebServer, links: int, more: str
) -> None:
    serve(web, pages(p="".join(f"[@s{n} S](s{n})\n" for n in range(links))))
    person.gets(f"/open {web.url}/p")
    shown = ", ".join(f"@s{n}" for n in range(min(links, 8)))
    assert person.fails("/open none").message.split("\n")[1] == (
        f"Recovery: Verify the URL, or use a shortcut from the current page: {shown}{more}"
    )


@proves("WEB-04")
def test_a_page_that_is_too_large_is_refused(person: Person, web: WebServer) -> None:
    web.answer = Reply(b"x" * (10 * 1024 * 1024 + 1), "text/plain")
    refused = person.fails(f"/open {web.url}/big")
    assert refused.code == "LOAD_ERROR"
    assert refused.message == f"Network error fetching {web.url}/big: more than 10485760 bytes"


@proves("WEB-07")
@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ("Café".encode("latin-1"), "text/plain; charset=iso-8859-1"),
        ("Café".encode(), "text/plain"),
        ("\ufeffCafé".encode(), "text/markdown"),
        ("\ufeffCafé".encode("utf-16-le"), "text/markdown"),
        ("\ufeff<p>Café".encode("utf-16-be"), "text/html"),
        ("<meta charset=windows-1252><p>Café".encode("latin-1"), "text/html"),
        ("<p>Café".encode("shift_jis", "replace"), "text/html; charset=nonsense"),
    ],
)
def test_text_is_decoded_as_it_declares_itself(
    person: Person, web: WebServer, body: bytes, kind: str
) -> None:
    web.answer = Reply(body, kind)
    said = person.gets(f"/open {web.url}/").partition("\n---\n")[2]
    assert said == ("Caf?" if b"Caf?" in body else "Café")


@proves("WEB-06")
def test_a_manifest_opens_as_its_root_and_serves_its_links(person: Person, web: WebServer) -> None:
    root = "# App\n\n[!nav:main](nav/m.md)\n\n[@g Guide](docs/guide.md) [@o Other](other.md)\n"
    files = [
        {"path": "string.md", "content": root},
        {"path": "docs/guide.md", "content": "# Guide\n[@up Up](../string.md)\n"},
        {"path": "nav/m.md", "content": "[@guide G](../docs/guide.md)\n"},
        {"path": "other.md", "url": "cdn/other.md"},
    ]
    manifest = {"name": "app", "files": files, "install_hint": "Run /install this"}
    serve(
        web,
        {
            "/app": Reply(json.dumps(manifest), "application/json"),
            **pages(**{"cdn/other.md": "# Other"}),
        },
    )
    assert person.gets(f"/open {web.url}/app") == (
        f"Opened {web.url}/app\n---\n[nav] main — first view\n[G][@main.guide]\n\n"
        "# App\n\n\n[Guide][@g] [Other][@o]\n\n---\n\nRun /install this"
    )
    guide = f"{web.url}/docs/guide.md\n---\n# Guide\n[Up][@up]"
    for target in ("@g", "@main.guide", "docs/guide.md"):
        assert person.gets(f"/open {target}") == f"Opened {guide}"
        assert person.gets("/refresh") == f"Refreshed {guide}"
        assert person.gets("/back").startswith(f"Back to {web.url}/app\n")
    assert person.gets("/open @o") == f"Opened {web.url}/other.md\n---\n# Other"
    assert [asked.target for asked in web.asked if "guide" in asked.target] == []


@proves("WEB-06")
def test_a_manifest_without_a_root_names_what_it_has(person: Person, web: WebServer) -> None:
    files = [{"path": f"f{n}.md", "content": ""} for n in range(7)]
    web.answer = Reply(json.dumps({"files": files}), "application/json")
    refused = person.fails(f"/open {web.url}/app")
    assert refused.code == "LOAD_ERROR"
    assert "string.md" in refused.message
    assert refused.message.endswith("f0.md, f1.md, f2.md, f3.md, f4.md")


@pytest.mark.parametrize("body", ['{"a": 1}', '{"files": 5}', "{broken", "[]", '"x"'])
def test_other_json_is_text(person: Person, web: WebServer, body: str) -> None:
    web.answer = Reply(body, "application/json")
    assert person.gets(f"/open {web.url}/x") == f"Opened {web.url}/x\n---\n{body}"


def test_a_page_declares_no_actions_through_code_samples(person: Person, web: WebServer) -> None:
    sample = '<main><pre><code class="language-act.evil">CLI rm -rf /</code></pre></main>'
    web.answer = Reply(sample, "text/html")
    said = person.says(f"/open {web.url}/x")
    assert said.meta["actions"] == []
    assert "CLI rm -rf /" in said.text


def test_a_page_is_fetched_again_only_when_asked(person: Person, web: WebServer) -> None:
    serve(web, pages(p="# P\n\n## S\n\ns\n"))
    person.gets(f"/open {web.url}/p")
    for command in ("/open #s", "/info", "/source", "/nav page", "/open #"):
        person.gets(command)
    assert len(web.asked) == 1
    serve(web, pages(p="# New\n"))
    assert person.gets("/refresh") == f"Refreshed {web.url}/p\n---\n# New"
    serve(web, {})
    assert person.fails("/refresh").code == "NOT_FOUND"
    assert person.gets("/open #new").endswith("# New")


@proves("WEB-01")
def test_nothing_is_fetched_when_the_owner_says_so(tmp_path: Path, web: WebServer) -> None:
    serve(web, pages(p="# P\n"))
    with Daemon(tmp_path, STRINGD_HTTP_LOADING="0") as daemon:
        person = Person(daemon.port, "u", daemon.home)
        refused = person.fails(f"/open {web.url}/p")
        assert refused.text == f"ERROR(LOAD_ERROR): HTTP loading is disabled: {web.url}/p"
        person.put("a.md", f"[!nav:m]({web.url}/p)\n# A\n")
        assert person.gets("/open a.md") == "Opened a.md\n---\n[nav] m — /nav <name>\n\n# A"
        person.put("b.md", f"# B\n\n```act.ask\nGET {web.url}/p\n```\n")
        person.gets("/open b.md")
        for command in ("/act.ask", f"/install {web.url}/p", f"/install --mcp far {web.url}/mcp"):
            assert "STRINGD_HTTP_LOADING=0" in person.fails(command).text
    assert web.asked == []


def test_a_binary_answer_is_named_as_one(person: Person, web: WebServer) -> None:
    web.answer = Reply(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", "image/png")
    refused = person.fails(f"/open {web.url}/x.png")
    assert refused.text == (
        f"ERROR(LOAD_ERROR): Failed to read {web.url}/x.png: "
        "it is a binary file (16 bytes, image/png)."
    )


def test_a_local_document_has_menus_from_the_web(person: Person, web: WebServer) -> None:
    serve(web, pages(**{"nav/m.md": "[@one One](../one.md#s)\n", "one.md": "# One\n\n## S\n\ns\n"}))
    person.put("own.md", "[@a Own](a.md)\n")
    person.put(
        "a.md",
        f"[!nav:own](own.md)\n[!nav:site]({web.url}/nav/m.md)\n[!nav:gone]({web.url}/none)\n# A\n",
    )
    assert person.gets("/open a.md") == (
        "Opened a.md\n---\n[nav] own — first view\n[Own][@own.a]\n"
        "[nav] site — first view\n[One][@site.one]\n[nav] gone — /nav <name>\n\n# A"
    )
    assert person.gets("/nav site") == "Menu: site\n---\n[One][@site.one]"
    assert person.gets("/nav gone") == "Menu: gone\n---\nMenu gone is empty."
    assert person.gets("/open @site.one") == f"Opened {web.url}/one.md#s\n---\n## S\n\ns"
    assert person.gets("/back").startswith("Back to a.md\n---\n[nav] own, site, gone — /nav <name>")
    assert person.gets("/refresh").startswith("Refreshed a.md\n")
    assert person.gets("/nav site").endswith("\n[One][@site.one]")


def test_a_local_document_includes_from_the_web(person: Person, web: WebServer) -> None:
    part = "## P\np [@n Next](next.md)\n[!include:q](sub/q.md)\n"
    serve(web, pages(**{"d/p.md": part, "d/sub/q.md": "## Q\nq\n", "d/next.md": "# Next\n"}))
    person.put("own.md", f"<!-- #own -->\nown\n[!include:q]({web.url}/d/sub/q.md)\n<!-- /own -->\n")
    gone = f"{web.url}/gone.md"
    person.put(
        "a.md", f"[!include:p]({web.url}/d/p.md)\n[!include:own](own.md)\n[!include:x]({gone})\n"
    )
    assert person.gets("/open a.md") == (
        "Opened a.md\n---\n## P\np [Next][@n]\n## Q\nq\nown\n## Q\nq\n"
        f"⚠ Include failed: {gone} - it could not be fetched"
    )
    assert person.gets("/open #p") == "Opened a.md#p\n---\n## P\np [Next][@n]\n## Q\nq"
    assert person.gets("/open @n") == f"Opened {web.url}/d/next.md\n---\n# Next"
    assert person.gets("/back").endswith("p [Next][@n]\n## Q\nq")


def test_a_block_of_a_web_page_includes_what_no_other_line_does(
    person: Person, web: WebServer
) -> None:
    page = "<!-- #b -->\n[!include:p](p.md)\n<!-- /b -->\n"
    serve(web, pages(**{"w.md": page, "p.md": "## P\np\n"}))
    assert person.gets(f"/open {web.url}/w.md").endswith("\n---\n## P\np")


def test_no_document_sends_us_around_the_whole_web(person: Person, web: WebServer) -> None:
    menus = "".join(f"[!nav:m{n}]({web.url}/m{n})\n" for n in range(80))
    web.answer = Reply("[@a A](a.md)\n", "text/markdown")
    person.put("a.md", menus)
    assert person.gets("/open a.md").startswith("Opened a.md\n")
    assert len(web.asked) == 50
    assert person.gets("/nav m49").endswith("[A][@m49.a]")
    assert person.gets("/nav m79").endswith("Menu m79 is empty.")
    web.asked.clear()
    page = Reply(menus, "text/markdown")
    web.answer = lambda asked: (
        page if asked.target == "/p" else Reply("[@a A](a.md)\n", "text/plain")
    )
    person.gets(f"/open {web.url}/p")
    assert len(web.asked) == 51
    assert person.gets("/nav m79").endswith("Menu m79 is empty.")


BAD = "//[bad"


@pytest.mark.parametrize(
    "text",
    [
        f"[!nav:m]({BAD})\n# P\n",
        "[!nav:m](m)\n# P\n",
        f"[!requirements]({BAD})\n# P\n",
        "# P\n[!include:s](i)\n",
        f"# P\n[!include:s]({BAD})\n[@q Q]({BAD})\n[a link]({BAD}{'x' * 40})\n",
    ],
)
def test_an_address_that_is_none_stops_no_page(person: Person, web: WebServer, text: str) -> None:
    part = f"## S\n\n[@q Q]({BAD}) [a link]({BAD}{'x' * 40})\n"
    serve(web, pages(p=text, m=f"[@a A]({BAD})\n", i=part))
    for name, content in {"p": text, "m": f"[@a A]({BAD})\n", "i": part}.items():
        person.put(name, content)
    for target in (f"{web.url}/p", "~/p"):
        assert "# P" in person.gets(f"/open {target}")
        person.gets("/nav --resolve")
        for name in ("@q", "@m.a"):
            assert person.fails(f"/open {name}").code != "INTERNAL_ERROR"


def test_includes_that_cannot_be_had_are_asked_for_only_so_often(
    person: Person, web: WebServer
) -> None:
    serve(web, pages(p="".join(f"[!include:x{n}](gone{n})\n" for n in range(80))))
    assert person.gets(f"/open {web.url}/p").count("it could not be fetched") == 80
    assert len(web.asked) == 51


def test_a_part_from_the_web_leads_to_the_web_only(person: Person, web: WebServer) -> None:
    key = f"file://{person.home}/key.md"
    links = f"## L\n[@one One]({key}) [@two Two](~/key.md) [t][t]\n[t]: {key}?{'t' * 40}\n"
    serve(web, pages(**{"m.md": f"[@key Key]({key})\n", "i.md": links}))
    person.put("key.md", "secret")
    person.put("a.md", f"[!nav:site]({web.url}/m.md)\n[!include:l]({web.url}/i.md)\n# A\n")
    person.gets("/open a.md")
    for name in ("@site.key", "@one", "@two", "@t"):
        refused = person.fails(f"/open {name}")
        assert refused.code == "FILE_NOT_ALLOWED"
        assert refused.message.startswith("A web page may link only to web addresses, not to ")


PRIVATE = "http://127.0.0.2:9/admin"
REFUSED = "a public page may not lead to the private address 127.0.0.2"


async def say(runtime: Runtime, text: str) -> str:
    """Run a command in-process, where 127.0.0.1 can be made to count as the public internet."""
    answer = runtime.execute(runtime.topics.slot("u", parse_topic("main")), text)
    result = (answer if isinstance(answer, Answer) else await answer).result
    return response_text(result)


@proves("WEB-05")
@pytest.mark.anyio
async def test_nothing_public_leads_to_a_private_address(tmp_path: Path, web: WebServer) -> None:
    links = f"[@dev Dev]({PRIVATE}) [Auto]({PRIVATE}?x)\n"
    moved = Reply(status=302, headers=(("Location", PRIVATE),))
    files = [{"path": "string.md", "content": "# App\n"}, {"path": "x.md", "url": PRIVATE}]
    manifest = Reply(json.dumps({"name": "app", "type": "app", "files": files}))
    serve(
        web,
        {
            **pages(p=f"[!nav:m](m)\n# P\n{links}", m=f"[@in In]({PRIVATE})\n"),
            **pages(i=f"## I\n{links}[!include:x]({PRIVATE}/i.md)\n"),
            "/r": moved,
            "/app": manifest,
        },
    )
    (tmp_path / "a.md").write_text(f"[!nav:site]({web.url}/m)\n[@own Own]({PRIVATE}?own)\n")
    (tmp_path / "i.md").write_text(f"[!include:i]({web.url}/i)\n[@own Own]({PRIVATE}?own)\n")
    fetcher = Fetcher(lambda address: "public" if address == "127.0.0.1" else "private")
    runtime = Runtime(RuntimeSettings(tmp_path / "data"), fetcher)
    runtime.topics.register("u", str(tmp_path))
    try:
        assert (await say(runtime, f"/open {web.url}/p")).startswith(f"Opened {web.url}/p\n")
        for target in ("@dev", "@auto", "@m.in", "//127.0.0.2:9/x", f"{web.url}/r"):
            assert REFUSED in await say(runtime, f"/open {target}")
        assert REFUSED in await say(runtime, f"/install --app {web.url}/app")
        assert (await say(runtime, "/open ~/a.md")).startswith("Opened a.md\n")
        assert REFUSED in await say(runtime, "/open @site.in")
        assert "/i.md - it could not be fetched" in await say(runtime, "/open ~/i.md")
        for target in ("@dev", "@auto"):
            assert REFUSED in await say(runtime, f"/open {target}")
        for asked_for in (PRIVATE, "@own"):
            said = await say(runtime, f"/open {asked_for}")
            assert said.startswith("ERROR(LOAD_ERROR): Network error fetching")
            assert REFUSED not in said
    finally:
        await runtime.close()


def test_chanflow_addresses_are_https(person: Person) -> None:
    refused = person.fails("/open chanflow://nobody.invalid/x")
    assert refused.message == (
        "Network error fetching https://nobody.invalid/x: cannot resolve nobody.invalid:443"
    )


def test_a_menu_that_is_the_page_is_refused(person: Person, web: WebServer) -> None:
    serve(web, pages(p="[!nav:m](p)\n", q="[!nav:m](n)\n", n="[!menu:m](q)\n"))
    for name in ("p", "q"):
        refused = person.fails(f"/open {web.url}/{name}")
        assert refused.code == "CIRCULAR_REFERENCE"
        assert refused.message == f"Circular menu/nav reference detected: {web.url}/{name}"
