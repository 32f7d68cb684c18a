"""Two runs side by side, and what starts to wait while one looks elsewhere."""

import re

from playwright.sync_api import Page, expect

from tests.page.support import World


def test_two_ticked_runs_are_compared_step_by_step(world: World, page: Page) -> None:
    first = world.completes("The first answer", name="Twice")
    second = world.completes("The second answer", name="Twice")
    page.goto(f"{world.address}runs")
    for run_id in (first, second):
        page.get_by_label(f"Compare {run_id[:6]}").click()
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name="Twice")).to_be_visible()
    expect(page.get_by_label("First run")).to_contain_text("The first answer")
    expect(page.get_by_label("Second run")).to_contain_text("The second answer")
    page.get_by_role("button", name="Swap").click()
    expect(page.get_by_label("First run")).to_contain_text("The second answer")
    page.keyboard.press("j")
    expect(page).to_have_url(re.compile("step=a"))
    page.reload()
    expect(page.get_by_label("Second run")).to_contain_text("The first answer")


def test_what_starts_to_wait_is_told_in_another_view_until_it_is_answered(
    world: World, page: Page
) -> None:
    world.asks_question("Was this asked before the page was opened?")
    page.goto(f"{world.address}health")
    expect(page.get_by_text("live", exact=True)).to_be_visible()
    toast = page.locator(".toast")
    expect(toast).to_have_count(0)
    world.asks_question("Which of the two?")
    expect(toast).to_contain_text("Which of the two?")
    toast.get_by_role("link", name="Open").click()
    expect(toast).to_have_count(0)
    page.get_by_label("Answer").fill("the second")
    # Buttons take nothing so soon after they appear.
    since = page.evaluate("performance.now()")
    page.wait_for_function("since => performance.now() - since > 500", arg=since)
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_text("Answered the second")).to_be_visible()


def test_nobody_is_asked_for_notices_before_a_click(world: World, page: Page) -> None:
    page.add_init_script("""
        window.asked = 0;
        Object.defineProperty(Notification, "permission", { get: () => "default" });
        Notification.requestPermission = async () => { window.asked += 1; return "granted"; };
    """)
    page.goto(world.address)
    button = page.get_by_role("button", name="Notify me")
    expect(button).to_be_visible()
    assert page.evaluate("window.asked") == 0
    button.click()
    expect(button).to_have_count(0)
    assert page.evaluate("window.asked") == 1
