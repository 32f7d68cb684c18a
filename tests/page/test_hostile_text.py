"""Text from documents, models, tools and callers stays text, whatever field carries it."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from stringd.gate.audit import AuditLog
from stringd.wire.gate import AUDIT_LOG
from tests.page.support import World, fits
from tests.runs.support import scripted, sequential, strategy

PAYLOADS = (
    "<script>document.title='owned'</script>",
    "<img src=x onerror=\"document.title='owned'\">",
    "<svg onload=\"document.title='owned'\">",
    "<svg><animate onbegin=\"document.title='owned'\" attributeName=x dur=1s>",
    "<iframe srcdoc=\"<script>parent.document.title='owned'</script>\"></iframe>",
    "<math><mtext></p><style><img src=x onerror=document.title='owned'>",
    "<a href=\"javascript:document.title='owned'\">click</a>",
    "[click](javascript:document.title='owned')",
    "[click](JaVaScRiPt:document.title='owned')",
    "[click](data:text/html,<script>alert(1)</script>)",
    "![x](x\" onerror=\"document.title='owned')",
    "<form action=//evil.example><button>ok</button></form>",
    "<input autofocus onfocus=\"document.title='owned'\">",
    "<details open ontoggle=\"document.title='owned'\">",
    "<base href=//evil.example/>",
    "<meta http-equiv=refresh content=0;url=//evil.example>",
    "<style>*{display:none}</style>",
    "<noscript><p title=\"</noscript><img src=x onerror=document.title='owned'>\">",
    "`${document.title='owned'}`",
    "{{constructor.constructor('document.title=1')()}}",
    "\"><script>document.title='owned'</script>",
    "<!--<img src=\"--><img src=x onerror=document.title='owned'>",
    "\u202e\u2066 sey\u2069\u0000\u001b[2J",
)
CORPUS = "\n\n".join(PAYLOADS)
ONE_LINE = " ".join(PAYLOADS)
ODD = "<img src=x onerror=document.title='owned'>"


@pytest.fixture(scope="module")
def hostile(world: World) -> World:
    # A file outside the workspace, which nobody lets it write: no shell reads any of this.
    call = {"name": "create_file", "args": {"path": f"/nowhere/{ODD}", "content": CORPUS}}
    asks = {**scripted({"chunks": [CORPUS], "tools": [call]}, "ended"), "tools": ["create_file"]}
    named = {**strategy(sequential(ODD)), "agents": {ODD: asks}, "name": f"Asks {PAYLOADS[1]}"}
    world.run(named, CORPUS, until="request_permission")
    says = strategy(sequential("a"), a=scripted({"thinking": CORPUS, "chunks": [CORPUS]}))
    world.run({**says, "name": PAYLOADS[0]}, CORPUS, run_id="hostile")
    world.fails(CORPUS, PAYLOADS[2])
    world.asks_question(CORPUS)
    page = world.daemon.home / "<img src=x onerror=1>.md"
    # With a NUL it would be no document.
    page.write_text(f"# {PAYLOADS[1]}\n\n{CORPUS}\n".replace("\0", ""), "utf-8")
    world.user.exec(f"/open './{page.name}'", "file:hostile")
    (world.daemon.home / "printed.txt").write_text(CORPUS, "utf-8")
    world.user.exec("cat printed.txt", "bash:hostile")
    # The last one clears the screen.
    (world.daemon.home / "drawn.txt").write_text("\n\n".join(PAYLOADS[:-1]), "utf-8")
    world.user.exec("//screen 80x24 cat drawn.txt; read x", "bash:drawn")
    world.user.exec(f"/nonsense {ONE_LINE}", "file:other")
    log = AuditLog(Path(world.daemon.data_dir) / AUDIT_LOG)
    asked = {"id": PAYLOADS[1], "session": PAYLOADS[2], "reason": CORPUS, "privileged": True}
    peer = {"pid": 1, "exe": PAYLOADS[1], "cwd": PAYLOADS[0]}
    log.append("received", {**asked, "peer": peer, "pipeline": [list(PAYLOADS)]})
    log.append("refused", {"message": CORPUS})
    return world


# Each view, and what is there once it shows some of the text.
VIEWS = {
    "": ".waiting > li",
    "runs": ".runs-table tbody tr",
    "run/hostile": ".entry.result",
    "topics": ".topics-table tbody tr",
    "topic/default/file:hostile": ".document.page",
    "topic/default/bash:hostile": ".ran .exit",
    "topic/default/bash:drawn": ".xterm-rows",
    "events": ".event",
    "gate": ".audit tbody tr",
    "health": ".checks li",
}


@pytest.mark.parametrize("view", VIEWS)
def test_nothing_of_it_runs_or_breaks_the_page(page: Page, hostile: World, view: str) -> None:
    leaving: list[str] = []
    page.on("request", lambda asked: leaving.append(asked.url))
    page.goto(f"{hostile.address}{view}")
    expect(page.locator(".live")).to_contain_text("live")
    expect(page.locator(VIEWS[view]).first).to_be_visible()
    if view.endswith(":drawn"):
        expect(page.locator(".xterm-rows")).to_contain_text("constructor.constructor")
    for opener in page.locator(".waiting .what > button").all():
        opener.click()
        expect(opener).to_have_attribute("aria-expanded", "true")
    closed = page.locator(".fold[aria-expanded=false]")
    for left in range(closed.count(), 0, -1):
        closed.first.click()
        expect(closed).to_have_count(left - 1)
    fits(page)
    strange = [each for each in leaving if not each.startswith(hostile.address.partition("/ui")[0])]
    assert strange == []
    assert "owned" not in page.title()
    shape = page.evaluate(
        """() => JSON.stringify({
          scripts: document.querySelectorAll(
            "main :is(script, iframe, base), main style:not(.xterm style)").length,
          handlers: [...document.querySelectorAll("main *")].filter((each) =>
            [...each.attributes].some((one) => one.name.startsWith("on"))).length,
          links: [...document.querySelectorAll("main a[href]")].filter((each) =>
            !/^(https?|mailto):/.test(each.protocol + "//")).length,
          nav: document.querySelector(".nav").getBoundingClientRect().height,
        })"""
    )
    assert json.loads(shape) == {"scripts": 0, "handlers": 0, "links": 0, "nav": 40}


def test_what_cannot_be_seen_is_spelled_out(page: Page, hostile: World) -> None:
    page.goto(f"{hostile.address}gate")
    expect(page.locator(".gate-card")).to_contain_text("\\u{202e}")
