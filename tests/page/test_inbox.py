"""What waits, answered on the page: by clicks, by keys, on two pages at once."""

import re

from playwright.sync_api import BrowserContext, Page, expect

from tests.page.support import Shown, World
from tests.runs.support import scripted, sequential, strategy

DECIDED = '"type":"permission_decision"'


def open_prompt(page: Page, text: str) -> None:
    """Open a prompt and wait until it takes answers: right after it appears it takes none."""
    page.locator(".waiting > li", has_text=text).locator(".what > button").click()
    expect(page.locator(".prompt")).to_be_visible()
    settle(page)


def settle(page: Page) -> None:
    since = page.evaluate("performance.now()")
    page.wait_for_function("since => performance.now() - since > 500", arg=since)


def test_a_permission_is_allowed_by_two_clicks(page: Page, world: World) -> None:
    run_id = world.asks_permission("Two clicks", "make two-clicks")
    page.goto(world.address)
    open_prompt(page, "make two-clicks")
    expect(page.locator(".prompt pre")).to_have_text("make two-clicks")
    page.get_by_role("button", name="Allow once").click()
    expect(page.locator(".prompt .answered")).to_contain_text("Answered allow by human")
    assert DECIDED in world.timeline(run_id)


def test_the_keyboard_alone_opens_reads_and_denies(page: Page, world: World) -> None:
    run_id = world.asks_permission("By keys", "make by-keys")
    page.goto(world.address)
    rows = page.locator(".waiting > li")
    expect(rows.last).to_contain_text("make by-keys")
    for number in range(rows.count()):
        page.keyboard.press("j")
        expect(rows.nth(number)).to_have_class("current")
    page.keyboard.press("Enter")
    expect(page.locator(".prompt")).to_be_focused()
    settle(page)
    page.keyboard.press("n")
    expect(page.locator(".prompt .answered")).to_contain_text("Answered deny")
    assert '"decision":"deny"' in world.timeline(run_id)


def test_what_is_to_be_written_is_seen_before_it_is_allowed(page: Page, world: World) -> None:
    edits = [{"oldText": "limit 8\n", "newText": "limit 64\nbuffer off\n"}]
    call = {"name": "edit_file", "args": {"path": "/nowhere/proxy.conf", "edits": edits}}
    agent = {**scripted({"tools": [call]}, "ended"), "tools": ["edit_file"]}
    world.run(strategy(sequential("proxy"), proxy=agent), until="request_permission")
    page.goto(world.address)
    open_prompt(page, "proxy.conf")
    expect(page.locator(".prompt .diff tr.del")).to_contain_text("limit 8")
    expect(page.locator(".prompt .diff tr.add")).to_have_text(
        ["+addedlimit 64", "+addedbuffer off"]
    )


def test_a_command_is_changed_before_it_is_allowed(page: Page, world: World) -> None:
    run_id = world.asks_permission("Edited", "make edited")
    page.goto(world.address)
    open_prompt(page, "make edited")
    page.get_by_role("button", name="Edit the command").click()
    page.get_by_label("Command to run instead").fill("true as-edited")
    expect(page.get_by_role("button", name="Allow for the session")).to_be_disabled()
    page.get_by_role("button", name="Allow as edited").click()
    expect(page.locator(".prompt .answered")).to_contain_text("Answered allow by human")
    assert "true as-edited" in world.timeline(run_id)


def test_keys_that_decide_do_nothing_while_somebody_types(page: Page, world: World) -> None:
    run_id = world.asks_permission("Typing", "make typing")
    page.goto(world.address)
    open_prompt(page, "make typing")
    reason = page.get_by_label("Reason for a denial")
    reason.click()
    page.keyboard.type("yYnN no")
    expect(reason).to_have_value("yYnN no")
    assert DECIDED not in world.timeline(run_id)


def test_a_question_is_answered_in_words(page: Page, world: World) -> None:
    run_id = world.asks_question("Go on with three sources?")
    page.goto(world.address)
    open_prompt(page, "Go on with three sources?")
    page.get_by_label("Answer").fill("yes, three are enough")
    page.get_by_label("Answer").press("Enter")
    expect(page.locator(".prompt .answered")).to_contain_text("yes, three are enough")
    assert "yes, three are enough" in world.timeline(run_id)


def test_what_starts_to_wait_appears_by_itself_and_counts_in_the_title(
    page: Page, world: World
) -> None:
    page.goto(world.address)
    expect(page.locator(".live")).to_contain_text("live")
    world.asks_permission("Later", "make later")
    expect(page.locator(".waiting")).to_contain_text("make later")
    expect(page).to_have_title(re.compile(r"^\(\d+\) Inbox"))


def test_two_pages_see_one_answer(context: BrowserContext, page: Page, world: World) -> None:
    world.asks_permission("Shared", "make shared")
    other = Shown(context)
    page.goto(world.address)
    other.page.goto(world.address)
    open_prompt(page, "make shared")
    open_prompt(other.page, "make shared")
    page.locator(".prompt").first.focus()
    page.keyboard.press("y")
    answered = other.page.locator(".prompt .answered")
    expect(answered).to_contain_text("Answered allow by human")
    expect(other.page.get_by_role("button", name="Allow once")).to_have_count(0)
    assert other.complaints == []


def test_several_are_answered_at_once_after_each_was_looked_at(page: Page, world: World) -> None:
    runs = [world.asks_permission("Bulk", f"make bulk-{n}") for n in (1, 2)]
    page.goto(world.address)
    for number in (1, 2):
        page.locator(".waiting > li", has_text=f"make bulk-{number}").get_by_label("Select").check()
    together = page.get_by_role("button", name="Allow 2 once")
    expect(together).to_be_disabled()
    for number in (1, 2):
        open_prompt(page, f"make bulk-{number}")
    together.click()
    expect(page.locator(".prompt .answered")).to_contain_text("Answered allow")
    expect(page.locator(".waiting > li", has_text="make bulk")).to_have_count(1)
    assert all('"decision":"allow"' in world.timeline(run) for run in runs)


def test_buttons_take_nothing_right_after_they_appear(page: Page, world: World) -> None:
    run_id = world.asks_permission("Hasty", "make hasty")
    page.goto(world.address)
    page.locator(".waiting > li", has_text="make hasty").locator(".what > button").click()
    page.evaluate("document.querySelector('.prompt .yes').click()")
    settle(page)
    expect(page.get_by_role("button", name="Allow once")).to_be_enabled()
    assert DECIDED not in world.timeline(run_id)


def test_a_failed_run_waits_until_it_is_put_away(page: Page, world: World) -> None:
    world.fails("overloaded by-the-test")
    page.goto(world.address)
    failed = page.locator(".waiting > li", has_text="overloaded by-the-test")
    expect(failed).to_be_visible()
    failed.get_by_role("button", name="Put away").click()
    expect(failed).to_have_count(0)
