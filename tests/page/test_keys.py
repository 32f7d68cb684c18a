"""Everything by the keyboard alone: going places, runs, events, a shell that runs away."""

import json
import re

import pytest
from playwright.sync_api import Page, expect

from tests.page.support import World
from tests.runs.support import scripted, strategy

READS = {"name": "read_file", "args": {"path": "kept.md"}}
FAILS = {"name": "read_file", "args": {"path": "missing.md"}}


@pytest.fixture(scope="module")
def busy(world: World) -> World:
    (world.daemon.home / "kept.md").write_text("# Kept\n", "utf-8")
    for name in ("first", "second"):
        world.completes({"chunks": ["I ", "look."], "tools": [READS, FAILS]}, name, run_id=name)
    return world


def live(page: Page) -> Page:
    expect(page.locator(".live")).to_contain_text("live")
    return page


def test_two_letters_go_to_every_view(page: Page, busy: World) -> None:
    page.goto(busy.address)
    live(page)
    for key, view in (
        ("r", "runs"),
        ("t", "topics"),
        ("e", "events"),
        ("g", "gate"),
        ("h", "health"),
    ):
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.wait_for_url(f"**/ui/{view}")
    page.keyboard.press("g")
    page.keyboard.press("i")
    expect(page.locator("h1")).to_have_text("Waits for you")


def test_runs_are_moved_through_opened_and_compared(page: Page, busy: World) -> None:
    page.goto(f"{busy.address}runs?q=Review")
    rows = page.locator(".runs-table tbody tr")
    expect(rows).to_have_count(2)
    for number in (0, 1):
        page.keyboard.press("j")
        expect(rows.nth(number)).to_have_class("current")
        page.keyboard.press("x")
        expect(rows.nth(number).get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("v")
    page.wait_for_url("**/ui/compare?*")
    page.go_back()
    expect(rows.nth(1)).to_have_class("current")
    page.keyboard.press("Enter")
    page.wait_for_url("**/ui/run/first")


def test_a_run_is_started_by_keys(page: Page, busy: World) -> None:
    page.goto(busy.address)
    live(page)
    page.keyboard.press("c")
    page.wait_for_url("**/ui/runs")
    field = page.get_by_label("Input")
    expect(field).to_be_focused()
    expect(page.get_by_role("radiogroup", name="Strategy")).to_contain_text("hello")
    page.keyboard.type("by keys")
    page.keyboard.press("Control+Enter")
    page.wait_for_url("**/ui/run/**")
    expect(page.locator(".run-head")).to_contain_text("ello")


def test_a_run_is_read_by_agent_and_zoomed_and_the_place_is_kept(page: Page, busy: World) -> None:
    page.goto(f"{busy.address}run/first")
    expect(page.locator(".entry.result")).to_be_visible()
    page.keyboard.press("]")
    expect(page).to_have_url(re.compile("agent=a"))
    calls = page.locator(".flow .node.call")
    expect(calls).to_have_count(2)
    expect(calls.last.get_by_label("failed")).to_be_attached()
    page.keyboard.press("+")
    expect(page).to_have_url(re.compile(r"zoom=\d+-\d+"))
    page.reload()
    expect(page.get_by_role("button", name="Whole run")).to_be_visible()
    page.keyboard.press("0")
    expect(page).not_to_have_url(re.compile("zoom"))
    page.keyboard.press("f")
    expect(page.get_by_role("form", name="Fork")).to_be_visible()


def test_what_a_run_did_is_found_by_tool_and_failure_without_the_noise(
    page: Page, busy: World
) -> None:
    page.goto(f"{busy.address}run/first")
    page.get_by_role("link", name="Events", exact=True).last.click()
    page.wait_for_url("**/ui/events?run=first")
    rows = page.locator(".event:not(.heading)")
    expect(rows.filter(has_text="text pieces of a").first).to_be_visible()
    expect(rows.filter(has_text="run.text")).to_have_count(0)
    page.keyboard.press("u")
    expect(rows.filter(has_text="run.text").first).to_be_visible()
    page.keyboard.press("u")
    page.locator(".facets").get_by_role("button", name="read_file").click()
    expect(rows).to_have_count(2)
    page.keyboard.press("f")
    expect(rows).to_have_count(1)
    page.keyboard.press("k")
    detail = page.get_by_label("Event", exact=True)
    expect(detail).to_contain_text("missing.md")
    detail.get_by_role("button", name="JSON").click()
    expect(detail.locator("pre")).to_contain_text('"toolName": "read_file"')
    page.reload()
    expect(rows).to_have_count(1)
    with page.expect_download() as download:
        page.keyboard.press("d")
    [line] = download.value.path().read_text("utf-8").splitlines()
    assert json.loads(line)["event"]["toolName"] == "read_file"


def test_keys_pressed_right_after_ctrl_k_do_not_reach_the_shell(page: Page, busy: World) -> None:
    busy.user.exec("true", "bash:quick")
    page.goto(f"{busy.address}topic/default/bash%3Aquick")
    page.locator("#terminal-line").focus()
    # Nothing is drawn between the two keys of this typist.
    focused = page.evaluate(
        """async () => {
            const key = { key: "k", ctrlKey: true, bubbles: true, cancelable: true };
            document.activeElement.dispatchEvent(new KeyboardEvent("keydown", key));
            for (let turn = 0; turn < 5; turn++) await Promise.resolve();
            return document.activeElement.ariaLabel;
        }"""
    )
    assert focused == "Search or do"


def test_a_shell_that_runs_away_is_killed_from_the_palette(page: Page, busy: World) -> None:
    busy.user.exec("true", "bash:away")
    page.goto(f"{busy.address}topic/default/bash%3Aaway")
    page.locator("#terminal-line").fill("cat")
    page.keyboard.press("Enter")
    expect(page.get_by_role("button", name="Kill")).to_be_visible()
    page.keyboard.press("Control+k")
    page.keyboard.type("kill away")
    expect(page.get_by_role("option").first).to_contain_text("Kill what runs in bash:away")
    page.keyboard.press("Enter")
    harmless = page.get_by_role("button", name="Let it run")
    expect(harmless).to_be_focused()
    # Buttons take nothing so soon after they appear.
    since = page.evaluate("performance.now()")
    page.wait_for_function("since => performance.now() - since > 500", arg=since)
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".ran").last).to_contain_text(re.compile(r"exit 1\d\d"))


def test_agents_side_by_side_speak_in_whole_sentences(page: Page, busy: World) -> None:
    chunks = ["each ", "of these ", "belongs to ", "one ", "sentence"]
    two = {
        name: {**scripted({"chunks": [f"{name}: ", *chunks]}), "tools": []} for name in ("x", "y")
    }
    for agent in two.values():
        agent["providerOptions"]["demo"]["delayMs"] = 20
    steps = [{"agent": "x"}, {"agent": "y"}]
    flow = {"name": "Both", "type": "broadcast", "parallel": True, "steps": steps}
    busy.run(strategy(flow, **two), run_id="both")
    page.goto(f"{busy.address}run/both")
    expect(page.locator(".entry.result")).to_be_visible()
    said = page.locator(".entry.said")
    expect(said).to_have_count(2)
    for name in two:
        whole = f"{name}: each of these belongs to one sentence"
        expect(said.filter(has_text=whole)).to_have_count(1)
