"""Every view: it shows what there is, survives a restart, fits every width, and is accessible."""

import json
import re
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe  # type: ignore[import-untyped]
from playwright.sync_api import Browser, Page, expect

from stringd.gate.audit import AuditLog
from stringd.wire.gate import AUDIT_LOG
from tests.page.support import Shown, World, fits
from tests.runs.support import scripted, sequential, strategy
from tests.support.daemon import WAIT_SECONDS, Daemon

# Each view, and what is there once it shows what it is for.
VIEWS = {
    "": ".waiting > li",
    "runs": ".runs-table tbody tr",
    "topics": ".topics-table tbody tr",
    "events": ".event",
    "gate": ".audit tbody tr",
    "health": ".checks li",
    "run/shown": ".entry.result",
    "compare?a=shown&b=shown": ".steps tr",
    "topic/default/file:main?show=edit": ".editor textarea",
    "topic/default/bash:dev": ".ran .exit",
}


@pytest.fixture(scope="module")
def filled(world: World) -> World:
    write = {"name": "create_file", "args": {"path": "notes.md", "content": "# Notes\n\none\n"}}
    world.completes({"chunks": ["I write."], "tools": [write]}, "It is **done**.", run_id="shown")
    world.asks_permission("Asks", "make asks")
    world.fails("it broke")
    (world.daemon.home / "plan.md").write_text("# Plan\n\none\n", "utf-8")
    world.user.exec("/open plan.md", "file:main")
    world.user.exec("echo hello", "bash:dev")
    log = AuditLog(Path(world.daemon.data_dir) / AUDIT_LOG)
    asked = {"id": "q1", "session": "claude", "pipeline": [["uptime"]], "privileged": False}
    log.append("received", asked)
    log.append("decided", {"id": "q1", "decision": "approved"})
    log.append("finished", {"id": "q1", "exit_codes": [0], "duration_ms": 12})
    return world


def test_a_run_shows_its_flow_its_talk_and_what_it_changed(page: Page, filled: World) -> None:
    page.goto(f"{filled.address}run/shown")
    expect(page.locator(".flow")).to_contain_text("a")
    expect(page.locator(".changed")).to_contain_text("notes.md")
    expect(page.locator(".changed")).to_contain_text("+3")
    expect(page.locator(".diff tr.add").first).to_contain_text("# Notes")
    expect(page.locator(".entry.result strong")).to_have_text("done")
    expect(page.locator(".entry.said .document p").first).to_have_css("display", "block")


def test_a_run_is_forked_after_a_step(page: Page, filled: World) -> None:
    said = {name: scripted(f"{name} of {{message}}") for name in "abc"}
    filled.run(strategy(sequential("a", "b", "c"), **said), "it", run_id="whole")
    page.goto(f"{filled.address}run/whole")
    page.get_by_role("button", name="Fork from a step").click()
    form = page.get_by_role("form", name="Fork")
    form.get_by_role("combobox").select_option("b")
    form.get_by_role("button", name="Fork", exact=True).click()
    page.wait_for_url(lambda address: not address.endswith("run/whole"))
    expect(page.locator(".entry.segment").first).to_contain_text('Forked from whole after step "b"')
    expect(page.locator(".entry.result")).to_contain_text("c of b of a of it")
    fork = filled.timeline(page.url.rpartition("/")[2])
    assert fork.count('"type":"agent_call"') == 3
    assert fork.count('"type":"run_started"') == 2


def test_the_log_of_a_run_is_downloaded_whole(page: Page, filled: World) -> None:
    page.goto(f"{filled.address}run/shown")
    with page.expect_download() as download:
        page.get_by_role("link", name="Log as JSONL").click()
    lines = Path(download.value.path()).read_text("utf-8").splitlines()
    assert json.loads(lines[-1])["type"] == "strategy_completed"


def test_a_run_that_does_not_exist_is_said_to_be_missing(
    context: object, chromium: Browser, filled: World
) -> None:
    shown = Shown(chromium.new_context())
    shown.page.goto(f"{filled.address}run/nobody")
    expect(shown.page.locator(".empty")).to_contain_text("Run not found: nobody")
    shown.page.context.close()


def test_a_run_is_started_from_the_form(page: Page, filled: World) -> None:
    page.goto(f"{filled.address}runs")
    expect(page.get_by_role("radiogroup", name="Strategy")).to_contain_text("hello")
    page.locator(".start").get_by_role("button", name="Start").click()
    page.wait_for_url("**/ui/run/**")
    expect(page.locator(".run-head")).to_contain_text("ello")


def test_a_run_started_with_limits_shows_what_it_used_of_them(page: Page, filled: World) -> None:
    page.goto(f"{filled.address}runs")
    strategies = page.get_by_role("radiogroup", name="Strategy")
    strategies.get_by_text("hello", exact=True).click()
    page.get_by_text("Model and limits").click()
    page.get_by_label("Tokens").fill("5000")
    page.get_by_label("Minutes").fill("30")
    page.locator(".start").get_by_role("button", name="Start").click()
    budget = page.get_by_role("region", name="Budget")
    expect(budget).to_contain_text("of 5.0k")
    expect(budget).to_contain_text("of 30:00")
    # Tokens and the last words are read from the record of the run.
    page.goto(f"{filled.address}runs?show=Done")
    row = page.locator(".runs-table tbody tr").first
    expect(row.locator("td").nth(-2)).not_to_be_empty()


def test_the_gate_shows_its_log_and_that_the_chain_is_whole(page: Page, filled: World) -> None:
    page.goto(f"{filled.address}gate")
    expect(page.locator(".chain")).to_contain_text("Chain whole. 3 records")
    expect(page.locator(".audit")).to_contain_text("uptime")
    expect(page.get_by_role("button", name="Allow")).to_have_count(0)


def test_events_are_searched_and_read_whole(page: Page, filled: World) -> None:
    page.goto(f"{filled.address}events")
    page.get_by_label("Search events").fill("bash:dev echo")
    page.locator(".event", has_text="topic.done").first.click()
    expect(page.get_by_label("Event", exact=True)).to_contain_text("echo hello")


def test_the_palette_goes_anywhere_by_keys_and_escape_comes_back(page: Page, filled: World) -> None:
    page.goto(filled.address)
    expect(page.locator(".live")).to_contain_text("live")
    page.keyboard.press("Control+k")
    page.get_by_role("combobox").fill("health")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/health")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog", name="Keys")).to_contain_text("search or do")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.go_back()
    expect(page.locator("h1")).to_have_text("Waits for you")


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_has_a_serious_barrier(chromium: Browser, filled: World, view: str) -> None:
    # Axe is a script of its own, which the page's policy would keep out.
    context = chromium.new_context(bypass_csp=True)
    shown = context.new_page()
    shown.goto(f"{filled.address}{view}")
    expect(shown.locator(".live")).to_contain_text("live", timeout=WAIT_SECONDS * 1000)
    expect(shown.locator(VIEWS[view]).first).to_be_visible()
    light = barriers(shown)
    shown.emulate_media(color_scheme="dark")
    dark = barriers(shown)
    context.close()
    assert (light, dark) == ([], [])


def barriers(page: Page) -> list[tuple[str, str]]:
    return [
        (each["id"], each["nodes"][0]["html"][:200])
        for each in Axe().run(page).response["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_scrolls_sideways_at_any_width(page: Page, filled: World, view: str) -> None:
    page.goto(f"{filled.address}{view}")
    expect(page.locator(VIEWS[view]).first).to_be_attached()
    for width in (360, 390, 720, 820, 1280, 1920):
        page.set_viewport_size({"width": width, "height": 844})
        fits(page)


def test_the_navigation_fits_while_it_connects_and_much_waits(page: Page, filled: World) -> None:
    page.route(re.compile(r"/events(\?|$)"), lambda _: None)
    page.goto(f"{filled.address}gate", wait_until="commit")
    expect(page.locator(".nav .live")).to_contain_text("connecting")
    expect(page.locator(".nav .count").first).to_be_attached()
    page.evaluate(
        "for (const it of document.querySelectorAll('.nav .count')) it.textContent = '888'"
    )
    for width in range(360, 1000, 20):
        page.set_viewport_size({"width": width, "height": 844})
        fits(page)


def test_a_page_finds_the_daemon_again_and_doubles_nothing(tmp_path: Path, page: Page) -> None:
    with Daemon(tmp_path) as daemon:
        world = World(daemon)
        page.goto(f"{world.address}events")
        expect(page.locator(".live")).to_contain_text("live")
        world.user.exec("/help", "file:before")
        expect(page.locator(".event", has_text="file:before").first).to_be_visible()
        daemon.stop()
        expect(page.locator(".gone")).to_contain_text("stringd up")
        daemon.start()
        expect(page.locator(".gone")).to_have_count(0)
        World(daemon).user.exec("/help", "file:after")
        done = page.locator(".event", has_text="file:after").filter(has_text="topic.done")
        expect(done).to_have_count(1)
