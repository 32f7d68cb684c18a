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
    runtime.register("u", str(home))
    slot = runtime.slot("u", parse_topic("main"))
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
