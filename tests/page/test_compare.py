"""Two runs side by side, and what starts to wait while one looks elsewhere."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

from playwright.sync_api import BrowserContext, Page, expect

from tests.page.support import Shown, World
from tests.runs.support import scripted, sequential, strategy
from tests.support.daemon import Daemon


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
    results = page.get_by_label("Results")
    expect(results.locator("tr.del")).to_contain_text("The first answer")
    expect(results.locator("tr.add")).to_contain_text("The second answer")
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


def test_the_browser_says_what_starts_to_wait_while_the_page_is_hidden(
    world: World, context: BrowserContext, page: Page
) -> None:
    context.grant_permissions(["notifications"])
    page.add_init_script("""
        window.told = [];
        const Real = window.Notification;
        window.Notification = class extends Real {
          constructor(title, options) {
            super(title, options);
            window.told.push(`${title}: ${options.body}`);
            this.addEventListener("show", () => window.told.push("shown"));
            window.last = this;
          }
        };
        let hidden = false;
        const state = () => (hidden ? "hidden" : "visible");
        Object.defineProperty(document, "visibilityState", { get: state });
        window.hide = (now) => {
          hidden = now;
          document.dispatchEvent(new Event("visibilitychange"));
        };
    """)
    world.asks_question("Asked before?")
    page.goto(f"{world.address}health")
    expect(page.locator(".live")).to_contain_text("live")
    assert page.evaluate("Notification.permission") == "granted"
    world.asks_question("Seen in the page?")
    expect(page.locator(".toast")).to_contain_text("Seen in the page?")
    assert page.evaluate("window.told") == []
    page.evaluate("window.hide(true)")
    world.asks_question("Heard outside?")
    page.wait_for_function("() => window.told.length > 0")
    assert page.evaluate("window.told[0]") == "Research waits for you: critic asks: Heard outside?"
    page.evaluate("window.hide(false); window.last.onclick()")
    opened = page.locator(".waiting > li", has=page.locator(".prompt"))
    expect(opened).to_contain_text("Heard outside?")


def test_what_a_run_costs_is_shown_where_every_price_is_known(
    tmp_path: Path, context: BrowserContext
) -> None:
    with (
        paid_model() as url,
        Daemon(tmp_path, OPENAI_BASE_URL=f"{url}/v1", OPENAI_API_KEY="k") as daemon,
    ):
        world = World(daemon)
        paid = {"model": "openai/gpt-4o-mini"}
        world.run(strategy(sequential("a", "b"), a=paid, b=paid), "go", run_id="paid")
        world.run(strategy(sequential("a", "b"), a=paid, b=scripted("x")), "go", run_id="partly")
        shown = Shown(context)
        shown.page.goto(f"{world.address}run/paid")
        # Two calls of 200,000 tokens in and 50,000 out, at 0.15 and 0.60 dollars a million.
        expect(shown.page.locator(".run-head")).to_contain_text("$0.12")
        expect(shown.page.locator(".agents > div").first).to_contain_text("$0.06")
        shown.page.goto(f"{world.address}run/partly")
        expect(shown.page.locator(".agents > div").first).to_contain_text("$0.06")
        expect(shown.page.locator(".run-head")).not_to_contain_text("$")
        assert shown.complaints == []


class _Answer(BaseHTTPRequestHandler):
    """A model that says one word and counts many tokens."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        said = {"choices": [{"index": 0, "delta": {"content": "ok"}, "finish_reason": "stop"}]}
        counted = {"choices": [], "usage": {"prompt_tokens": 200_000, "completion_tokens": 50_000}}
        body = "".join(f"data: {json.dumps(each)}\n\n" for each in (said, counted))
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        self.wfile.write(f"{body}data: [DONE]\n\n".encode())

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def paid_model() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Answer)
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
