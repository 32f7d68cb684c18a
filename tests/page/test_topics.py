"""Topics in the page: a program that draws, and a document that is edited."""

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import BrowserContext, Page, expect

from tests.page.support import Shown, World
from tests.support.http import request as send

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
    send(drawing.daemon.port, "POST", "/topics/default/bash:draw/input", {"text": "q"})
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
    # The program is told a moment after the place changed, and draws a moment later.
    screen.wait_for_function(
        """() => {
          const [box, drawn] = [".screen", ".xterm-screen"].map((each) =>
            document.querySelector(each).getBoundingClientRect());
          return drawn.right <= box.right && drawn.bottom <= box.bottom;
        }"""
    )


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
    with shown.page.expect_console_message(lambda said: "style-src" in said.text):
        counted = shown.page.evaluate(
            """() => {
              const nonce = document.querySelector('meta[name="style-nonce"]').content;
              return JSON.stringify([nonce, ""].map((word) => {
                const made = document.createElement("style");
                made.nonce = word;
                made.textContent = ":root { --probe: yes }";
                document.head.append(made);
                const all = getComputedStyle(document.documentElement);
                const shown = all.getPropertyValue("--probe");
                made.remove();
                return shown.trim();
              }));
            }"""
        )
    assert json.loads(counted) == ["yes", ""]
    assert ["style-src" in each for each in shown.complaints] == [True]


@pytest.fixture
def edited(page: Page, drawing: World, request: pytest.FixtureRequest) -> Page:
    name = f"{len(request.node.name)} it's.md"
    (drawing.daemon.home / name).write_text("# Plan\n\none\ntwo\n", "utf-8")
    drawing.user.exec(f'/open "{name}"', "file:edited")
    page.goto(f"{drawing.address}topic/default/file%3Aedited")
    page.get_by_role("button", name="Edit").click()
    expect(page.get_by_label("Text of the document")).to_have_value("# Plan\n\none\ntwo\n")
    return page


def file_of(world: World, page: Page) -> Path:
    return world.daemon.home / page.locator(".topic-head code").inner_text()


def test_a_document_is_edited_as_text_and_saved_by_keys(edited: Page, drawing: World) -> None:
    field = edited.get_by_label("Text of the document")
    field.fill("---\ntitle: x\n---\n# Plan\n\n'three' \"four\"\n\n")
    field.press("Control+s")
    expect(edited.locator(".editor .bar")).to_contain_text("Saved.")
    text = file_of(drawing, edited).read_text("utf-8")
    assert text == "---\ntitle: x\n---\n# Plan\n\n'three' \"four\"\n\n"
    edited.get_by_role("button", name="Page", exact=True).click()
    expect(edited.locator(".document.page")).to_contain_text("'three' \"four\"")


def test_what_changed_meanwhile_is_shown_and_overwritten_only_on_purpose(
    edited: Page, drawing: World
) -> None:
    path = file_of(drawing, edited)
    edited.get_by_label("Text of the document").fill("# Mine\n")
    path.write_text("# Plan\n\none\nTWO\n", "utf-8")
    edited.get_by_role("button", name="Save").click()
    meanwhile = edited.get_by_label("Changed meanwhile")
    expect(meanwhile.locator("tr.del")).to_contain_text("two")
    expect(meanwhile.locator("tr.add")).to_contain_text("TWO")
    assert path.read_text("utf-8") == "# Plan\n\none\nTWO\n"
    edited.get_by_role("button", name="Back to my text").click()
    edited.get_by_role("button", name="Save").click()
    edited.get_by_role("button", name="Overwrite with mine").click()
    expect(edited.locator(".editor .bar")).to_contain_text("Saved.")
    assert path.read_text("utf-8") == "# Mine\n"


def test_a_draft_is_there_after_a_look_elsewhere(edited: Page) -> None:
    edited.get_by_label("Text of the document").fill("# Half")
    edited.get_by_role("link", name="Inbox", exact=True).click()
    edited.go_back()
    expect(edited.get_by_label("Text of the document")).to_have_value("# Half")
    edited.get_by_role("button", name="Undo all").click()
    expect(edited.get_by_role("button", name="Save")).to_be_disabled()
