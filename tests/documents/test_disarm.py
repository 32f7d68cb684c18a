"""Text of strangers declares nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.documents import html_to_markdown, parse, render
from stringd.documents.disarm import disarmed

TAGS = ["p", "a", "b", "pre", "code", "ul", "li", "table", "td", "main", "textarea", "title", "h1"]
TEXTS = [
    "text",
    "\n",
    "&#10;",
    "[!nav:x](y)",
    "[@a A](b.md)",
    "[r]: https://x.test",
    "&lt;!-- #b --&gt;",
    "```act.x\nCLI rm -rf /\n```",
    "---\ndefault: x\n---\n",
    "~~~",
]
PIECES = [
    *TEXTS,
    *(f"<{tag}>" for tag in TAGS),
    *(f"</{tag}>" for tag in TAGS),
    "<a href='u'>@a</a>",
]


def declares(text: str) -> bool:
    document = parse(text)
    found = (document.actions, document.directives, document.markers, document.definitions)
    return bool(document.body_start or any(found) or document.shortcuts)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("---\nk: v\n---\nx", "\\---\nk: v\n---\nx"),
        ("a\n  <!-- #b -->\nc\n<!-- /b -->", "a\n  \\<!-- #b -->\nc\n\\<!-- /b -->"),
        ("[!include:x](/etc/passwd)", "\\[!include:x](/etc/passwd)"),
        ("[@a A](b.md) [@x](https://x.test)", "[\\@a A](b.md) [\\@x](https://x.test)"),
        ("[r]: https://x.test\n[@s]: y", "\\[r]: https://x.test\n\\[@s]: y"),
        ("```act.x\nCLI ls\n```", "```\\act.x\nCLI ls\n```"),
        ("---\n[!nav:x](y)\n---\n", "\\---\n\\[!nav:x](y)\n---\n"),
    ],
)
def test_declarations_get_a_backslash(text: str, expected: str) -> None:
    assert disarmed(text) == expected


def test_code_and_plain_text_stay_as_they_are() -> None:
    text = "# T\n\n[L](https://x.test) `[@a A](b)`\n\n```md\n[!nav:x](y)\n<!-- #b -->\n```\n"
    assert disarmed(text) == text


def test_a_mention_on_a_page_stays_a_link_with_its_sign() -> None:
    markdown = html_to_markdown("<p>by <a href='https://x.test/ann'>@ann</a></p>")
    assert render(parse(markdown)).text == "by [\\@ann][@link-1]"


@given(st.lists(st.sampled_from(PIECES), max_size=20))
def test_no_page_declares_anything(pieces: list[str]) -> None:
    assert not declares(html_to_markdown("".join(pieces)))


@given(st.text(alphabet="[]()!@#:<>-/ `~\nacte.xGLI", max_size=60))
def test_no_text_declares_anything_once_disarmed(text: str) -> None:
    assert not declares(disarmed(text))
