"""Topics in the page: a program that draws, and a document that is edited."""

import json
import re
import sys
from collections.abc import Iterator

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.page.support import Shown, World
from tests.support.http import request

# Draws its size and the keys it gets until it gets a q.
DRAWS = """\
import os, signal, sys, termios, tty
def draw(*_):
    size = os.get_terminal_size()
    os.write(1, f"\\x1b[2;1Hsize {size.columns} by {size.lines}\\x1b[K".encode())
signal.signal(signal.SIGWINCH, draw)
before = termios.tcgetattr(0)
tty.setraw(0)
os.write(1, b"\\x1b[?1049h\\x1b[2J\\x1b[1;1H")
os.write(1, b"\\x1b[38;2;200;10;10mdrawn\\x1b[0m \\x1b[31mred\\x1b[0m")
draw()
keys = b""
while not keys.endswith(b"q"):
    keys += os.read(0, 1)
    os.write(1, f"\\x1b[3;1Hkeys {keys!r}".encode())
os.write(1, b"\\x1b[?1049l")
termios.tcsetattr(0, termios.TCSADRAIN, before)
"""
SIZE = re.compile(r"size \d+ by \d+")


@pytest.fixture(scope="module")
def drawing(world: World) -> World:
    (world.daemon.home / "draw.py").write_text(DRAWS, "utf-8")
    world.user.exec("true", "bash:draw")
    return world


@pytest.fixture
def screen(page: Page, drawing: World) -> Iterator[Page]:
    page.goto(f"{drawing.address}topic/default/bash%3Adraw")
    page.get_by_label("on a screen").check()
    page.locator("#terminal-line").fill(f"{sys.executable} draw.py")
    page.keyboard.press("Enter")
    expect(page.locator(".xterm-rows")).to_contain_text(SIZE)
    yield page
    request(drawing.daemon.port, "POST", "/topics/default/bash:draw/input", {"text": "q"})
    expect(page.locator(".screen")).to_have_count(0)


def test_a_program_that_draws_is_seen_and_takes_keys_as_they_are_pressed(screen: Page) -> None:
    rows = screen.locator(".xterm-rows")
    expect(screen.locator(".xterm-helper-textarea")).to_be_focused()
    screen.keyboard.type("hi")
    screen.keyboard.press("ArrowUp")
    screen.keyboard.press("Control+k")
    expect(rows).to_contain_text(r"keys b'hi\x1b[A\x0b'")
    expect(screen.get_by_role("dialog")).to_have_count(0)
    screen.keyboard.press("q")
    expect(screen.locator(".ran").last).to_contain_text("exit 0, drawn on a screen")


def test_the_screen_has_the_size_of_its_place(screen: Page) -> None:
    rows = screen.locator(".xterm-rows")
    before = SIZE.findall(rows.inner_text())[0]
    screen.set_viewport_size({"width": 1000, "height": 640})
    expect(rows).not_to_contain_text(before)
    inside = screen.evaluate(
        """() => {
          const [box, drawn] = [".screen", ".xterm-screen"].map((each) =>
            document.querySelector(each).getBoundingClientRect());
          return drawn.right <= box.right && drawn.bottom <= box.bottom;
        }"""
    )
    assert inside


def test_somebody_who_comes_later_sees_the_same_screen(screen: Page) -> None:
    screen.keyboard.type("abc")
    expect(screen.locator(".xterm-rows")).to_contain_text("keys b'abc'")
    screen.reload()
    expect(screen.locator(".xterm-rows")).to_contain_text("drawn red")
    expect(screen.locator(".xterm-rows")).to_contain_text("keys b'abc'")


def test_what_draws_is_loaded_only_when_something_draws(page: Page, drawing: World) -> None:
    loaded: list[str] = []
    page.on("request", lambda asked: loaded.append(asked.url))
    page.goto(f"{drawing.address}topic/default/bash%3Adraw")
    expect(page.locator("#terminal-line")).to_be_visible()
    assert not [each for each in loaded if "xterm" in each]


def test_styles_count_only_with_the_word_of_this_page(
    context: BrowserContext, drawing: World
) -> None:
    shown = Shown(context)
    shown.page.goto(drawing.address)
    expect(shown.page.locator(".live")).to_contain_text("live")
    counted = shown.page.evaluate(
        """() => {
          const nonce = document.querySelector('meta[name="style-nonce"]').content;
          return JSON.stringify([nonce, ""].map((word) => {
            const made = document.createElement("style");
            made.nonce = word;
            made.textContent = ":root { --probe: yes }";
            document.head.append(made);
            const shown = getComputedStyle(document.documentElement).getPropertyValue("--probe");
            made.remove();
            return shown.trim();
          }));
        }"""
    )
    assert json.loads(counted) == ["yes", ""]
    assert ["style-src" in each for each in shown.complaints] == [True]
