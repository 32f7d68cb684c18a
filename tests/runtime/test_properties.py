"""Whatever is typed, a command answers; it never fails for a reason of its own."""

import asyncio
import logging
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stringd.runtime.runtime import Answer, Runtime
from stringd.runtime.settings import RuntimeSettings
from stringd.wire.topic import parse_topic
from tests.support.web import Asked, Reply, WebServer

COMMANDS = (
    *("open", "back", "refresh", "nav", "source", "write", "append", "edit", "replace"),
    *("verify", "undo", "info", "set", "close", "ls", "help", "topics", "session", "sessions"),
)
WORDS = (
    *(
        "a.md",
        "b.md",
        "dir",
        "dir/c.md",
        "gone.md",
        ".",
        "..",
        "~",
        "/",
        "//",
        "#s",
        "#",
        "@a",
        "@",
    ),
    *("a.md#s", "a.md#b", "a.md:L1", ":L2-L1", ":L99", "a.md:L0-5", "--all", "--new", "--force"),
    *("--edit", "--tab", "t", "page", "scaffold", "--resolve", "close", "list", "app:x", "tool:y"),
    *(
        "{x}",
        "=",
        "$Y",
        '"',
        "'",
        '"q w"',
        "file:///",
        "file://%",
        "http://[",
        "x://y",
        "%00",
        "\0",
    ),
    *("é", "한국", "```{p}", "---", "<!-- #b -->", "<!-- /b -->", "\t", "\r"),
)
words = st.lists(st.sampled_from(WORDS) | st.text(max_size=6), max_size=5)
lines = st.builds(
    lambda name, argument, body: f"/{name} {' '.join(argument)}" + "".join(f"\n{b}" for b in body),
    st.sampled_from(COMMANDS),
    words,
    words,
)
texts = lines | st.text(max_size=20)
PAGE = "# A\n\n[!nav:m](b.md)\n\n[!include:b](dir/c.md)\n\n[@a A](dir)\n\n## S\n\n[L](https://x.test)\n"


async def play(home: Path, data: Path, commands: list[str]) -> list[Answer]:
    runtime = Runtime(RuntimeSettings(data))
    runtime.topics.register("u", str(home))
    slot = runtime.topics.slot("u", parse_topic("main"))
    answers = []
    for command in commands:
        answer = runtime.execute(slot, command)
        answers.append(answer if isinstance(answer, Answer) else await answer)
    await runtime.close()
    return answers


@settings(max_examples=150, deadline=None)
@given(commands=st.lists(texts, min_size=1, max_size=12))
def test_no_sequence_of_commands_is_a_defect(
    commands: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("play")
    home = root / "home"
    (home / "dir").mkdir(parents=True)
    (home / "a.md").write_text(PAGE, encoding="utf-8")
    (home / "b.md").write_text("[@e E](a.md#s)\n", encoding="utf-8")
    (home / "dir/c.md").write_bytes(b"\xef\xbb\xbf<!-- #b -->\r\nB \xff\r\n<!-- /b -->\r\n")
    (root / "outside").write_text("untouched", encoding="utf-8")
    logging.getLogger("stringd.runtime").setLevel(logging.CRITICAL)
    answers = asyncio.run(play(home, root / "data", commands))
    for command, answer in zip(commands, answers, strict=True):
        result = answer.result
        if result.code == "INTERNAL_ERROR":
            assert result.message.startswith(("Write failed: ", "Could not store")), command
    assert {path.name for path in root.iterdir()} <= {"home", "data", "outside"}
    assert (root / "outside").read_text(encoding="utf-8") == "untouched"


BAD = "//[bad"
FRAGMENTS = (
    *("# H\n", "## S {#x}\n", "text", "\r\n", "\x00", "```\n", "---\n", "`", "\\", "\u2028"),
    *("[!nav:m](m.md)\n", f"[!nav:n]({BAD})\n", "[!include:s](i.md#x)\n", "[!include:p](p.md)\n"),
    *(f"[!include:t]({BAD})\n", f"[!requirements]({BAD})\n", "<!-- #s -->\n", "<!-- /s -->\n"),
    *("[@a A](p.md#%E0%A4)", f"[@b B]({BAD})", f"[long]({BAD}{'x' * 40})", "[r]: http://]x\n"),
    *("[t][r]", "[u][@m.a]", "```act.x\nGET /a\n```\n", "---\ndefault: x\n---\n", "<main><p>"),
    *('{"files":[{"path":"string.md"}]}', '{"files":[{"path":"string.md","url":"//["}]}'),
)
KINDS = (
    *("text/markdown", "text/html", "text/html; charset=utf-16", "application/json", ""),
    *("text/plain; charset=punycode", "text/plain; charset=idna", 'text/plain; charset="', "x"),
)
PLACES = ("/back", "/refresh", "/nav", "/nav m", "/nav --resolve", "/nav scaffold", "/info")
FOLLOWED = ("@a", "@b", "@m.a", "#s", "#x", "i.md", "p.md#s", BAD, "?x", "p.md:L1")
bodies = st.lists(st.sampled_from(FRAGMENTS), max_size=8).map("".join)
replies = st.builds(
    lambda body, kind, status, location: Reply(body, kind, status, (("Location", location),)),
    bodies,
    st.sampled_from(KINDS),
    st.sampled_from([200, 200, 200, 302, 404, 500]),
    st.sampled_from(["/p.md", BAD, "http://", "file:///etc/passwd", "ftp://x", "?", " "]),
)


@settings(max_examples=50, deadline=None)
@given(
    pages=st.lists(replies, min_size=1, max_size=6),
    moves=st.lists(
        st.sampled_from(PLACES) | st.sampled_from(FOLLOWED).map(lambda name: f"/open {name}"),
        max_size=6,
    ),
)
def test_no_page_of_files_or_of_the_web_is_a_defect(
    pages: list[Reply], moves: list[str], tmp_path_factory: pytest.TempPathFactory
) -> None:
    root = tmp_path_factory.mktemp("pages")
    home = root / "home"
    home.mkdir()
    for name, page in zip(("p.md", "m.md", "i.md"), pages, strict=False):
        (home / name).write_text(str(page.body), encoding="utf-8", newline="")
    logging.getLogger("stringd.runtime").setLevel(logging.CRITICAL)
    served = iter(range(1_000_000))

    def answer(_: Asked) -> Reply:
        return pages[next(served) % len(pages)]

    with WebServer(answer) as web:
        commands = ["/open p.md", *moves, f"/open {web.url}/p.md", *moves]
        answers = asyncio.run(play(home, root / "data", commands))
    for command, said in zip(commands, answers, strict=True):
        assert said.result.code != "INTERNAL_ERROR", (command, said.result.message)
