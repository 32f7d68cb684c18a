"""A real browser on the page of a real daemon."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from tests.page.support import Shown, World
from tests.support.browser import PROGRAM
from tests.support.daemon import WAIT_SECONDS, Daemon


@pytest.fixture(scope="package")
def chromium() -> Iterator[Browser]:
    """Not for the session: as long as Playwright runs, this thread has its event loop."""
    if PROGRAM is None:
        pytest.skip("Chromium is not installed")
    # Its own five seconds are not enough for a busy machine.
    expect.set_options(timeout=WAIT_SECONDS * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    with Daemon(tmp_path_factory.mktemp("page")) as daemon:
        yield World(daemon)


@pytest.fixture
def context(chromium: Browser) -> Iterator[BrowserContext]:
    made = chromium.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(WAIT_SECONDS * 1000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    """A tab. What its scripts or its policy complain about fails the test."""
    shown = Shown(context)
    yield shown.page
    assert shown.complaints == []
