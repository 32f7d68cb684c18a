"""Texts that look like documents, and texts that only just do not."""

from hypothesis import strategies as st

LINES = [
    "",
    "   ",
    "---",
    "title: x",
    "# One",
    "## Two {#two}",
    "### 한국어 제목",
    "#no heading",
    "<!-- #a -->",
    "<!-- /a -->",
    "  <!-- #b -->",
    "<!-- /b -->",
    "<!-- # a -->",
    "```",
    "````",
    "~~~",
    "```act.find",
    "```act.find.response",
    'GET https://h.test/{q} -H "K: v"',
    '  q, -q: string (required) "what" = "x"',
    "  body:",
    "[!nav:main](./nav.md)",
    "[!include:part](./other.md)",
    "[!include](x)",
    "[!requirements](./r.md)",
    "[!other:x](y)",
    '[ref]: https://ref.test "t"',
    "[@s]: ./s.md",
    "[@s Label](./s.md) and [@s Again](./t.md)",
    "a [link](https://l.test) and [x][ref], [y][@s], [z][@nope]",
    "![img](https://i.test/x.png) [![a](b)](https://c.test)",
    "`[c](https://c.test)` \\[e](https://e.test) ``a`b``",
    "[a [b](https://x.test) c](d) [](https://e.test)",
    "text",
    "é ü 漢字 \u2028 \x0b \x00",
]

chunk = st.one_of(st.sampled_from(LINES), st.text(max_size=30))
newline = st.sampled_from(["\n", "\n", "\n", "\r\n", "\r"])


@st.composite
def documents(draw: st.DrawFn) -> str:
    """Any text, biased towards the constructs of the format."""
    pieces = draw(st.lists(st.tuples(chunk, newline), max_size=25))
    text = "".join(line + end for line, end in pieces)
    return draw(st.sampled_from(["", "\ufeff", "---\n"])) + text
