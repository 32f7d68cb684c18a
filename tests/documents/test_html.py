"""Web pages as Markdown."""

import pytest

from stringd.documents import html_to_markdown
from stringd.documents.html import html_to_text


@pytest.mark.parametrize(
    ("html", "expected"),
    [
        ("<h1>T</h1><p>a <b>b</b> <i>c</i> <em>d</em></p>", "# T\n\na **b** _c_ _d_"),
        ("<ul><li>one</li><li>two</li></ul>", "* one\n* two"),
        ('<p><a href="/r?a=1&amp;b=2">x</a></p>', "[x](/r?a=1&b=2)"),
        ("<pre><code class='language-py'>a_b = 1\n</code></pre>", "```py\na_b = 1\n```"),
        ("<p>a</p><hr><p>b</p>", "a\n\n* * *\n\nb"),
        ("<p>snake_case * [x] `y`</p>", "snake\\_case \\* \\[x\\] \\`y\\`"),
        (
            "<p># no</p><p>1. no</p><p>- no</p><p>2 - 1 # 3</p>",
            "\\# no\n\n1\\. no\n\n\\- no\n\n2 - 1 # 3",
        ),
        ("<nav>n</nav><main><header>h</header><p>m</p></main><p>after</p>", "m"),
        ("<p>before</p><div role=main><p>m</p></div><article>a</article>", "m"),
        ("<article><p>a</p><aside>s</aside></article><p>after</p>", "a"),
        ("<body><script>x()</script><style>y</style>hi<footer>f</footer></body>", "hi"),
        ("plain", "plain"),
        ("", ""),
        ("<pre><code class='language-act.x'>CLI ls</code></pre>", "```\nCLI ls\n```"),
        ("<p>one\n# two\n- three\r\n\t1. four</p>", "one # two - three 1. four"),
        ("<p>a<br># b<br>&lt;!-- #c --&gt;</p>", "a  \n\\# b  \n\\<!-- #c -->"),
        (
            "<p>&lt;!-- #c --&gt;</p>\n<p>x</p>\n&lt;!-- /c --&gt;",
            "\\<!-- #c -->\n\nx\n\n\\<!-- /c -->",
        ),
        ("<pre>a\n# b\n  c</pre>", "```\na\n# b\n  c\n```"),
        ("<head><noscript><img src='t.gif'>n</noscript></head><body>x<NOSCRIPT>y</NOSCRIPT>", "x"),
        ("<p>a<noscript>b", "ab"),
        ("<p>[!include:x](/etc/passwd)</p>", "\\[!include:x\\](/etc/passwd)"),
        ("<p>a<em> b </em>c <i>d <b>e</b> </i>f</p>", "a _b_ c _d **e**_ f"),
        ("<p><em>a <i>b</i></em></p>", "_a b_"),
        ("<h2><a href='#t'>T</a></h2><h2>U<a href='#u'>¶</a></h2>", "## T\n\n## U"),
        ("<h2><a href='/t#t'>T</a></h2>", "## [T](/t#t)"),
        (
            "<table><tr><th>a long name</th></tr><tr><td>x|y</td></tr></table>",
            "| a long name |\n| --- |\n| x\\|y |",
        ),
        ("<pre><i>a</i> <a href=/b>b</a> <em>c</em></pre>", "```\na b c\n```"),
        ("<code>a <i>b</i></code> <a href=/c><code>c</code></a>", "`a b` [`c`](/c)"),
        (
            "<p><img src='data:image/png;base64,AAAA' alt='Logo'> <img src=/b.png></p>",
            "Logo ![](/b.png)",
        ),
        (
            "<a href=/h aria-label='Home [x]'><svg></svg></a><a href=/i><i></i></a>",
            "[Home \\[x\\]](/h)",
        ),
        ("<a href=/h><img src=i.png alt=I></a>", "[![I](i.png)](/h)"),
    ],
)
def test_pages(html: str, expected: str) -> None:
    assert html_to_markdown(html) == expected


@pytest.mark.parametrize(
    ("base", "expected"),
    [
        ("/docs/", "[a](/docs/a) [b](/b) [c](https://c.test/) [d](#d)"),
        (
            "https://x.test/",
            "[a](https://x.test/a) [b](https://x.test/b) [c](https://c.test/) [d](#d)",
        ),
        ("", "[a](a) [b](/b) [c](https://c.test/) [d](#d)"),
        ("//[", "[a](a) [b](/b) [c](https://c.test/) [d](#d)"),
    ],
)
def test_links_start_where_the_page_says(base: str, expected: str) -> None:
    links = {"a": "a", "b": "/b", "c": "https://c.test/", "d": "#d"}
    body = " ".join(f"<a href={target}>{label}</a>" for label, target in links.items())
    assert html_to_markdown(f"<head><base href='{base}'></head><p>{body}</p>") == expected


def test_blank_lines_do_not_pile_up() -> None:
    assert "\n\n\n" not in html_to_markdown("<div><p>a</p><div></div><br><br><br><p>b</p></div>")


@pytest.mark.parametrize(
    "html",
    [
        *(f"<{tag}>" * 50_000 + "x" for tag in ("div", "DIV", "article", "dl", "B", "small")),
        *("\ud800x", "<b" * 1000, "\x00x", "<p>" * 20_000),
    ],
)
def test_hostile_pages_are_survived(html: str) -> None:
    assert isinstance(html_to_markdown(html), str)


def test_a_page_can_be_read_as_bare_lines() -> None:
    page = "<h1>Title</h1><p>Some <b>bold</b> text</p><script>x()</script>"
    assert html_to_text(page) == "Title\nSome\nbold\ntext"
    assert html_to_text("") == ""
