import re
from dataclasses import replace
from pathlib import Path

import pytest

from stringd.gate.arguments import ChangeableFiles
from stringd.gate.display import paint
from stringd.gate.program import ShownProgram
from stringd.gate.question import (
    MAX_AT_A_GLANCE,
    AskingPeer,
    Question,
    Size,
    compose,
    digest,
    question_text,
    word_lines,
)
from stringd.gate.trust import Weakness
from tests.gate.test_validate import valid, validated
from tests.requirements import proves

GOLDEN = Path(__file__).parent / "golden"
PEER = AskingPeer(4242, 1000, "/usr/bin/node", "/home/alice/project")


def question(*stages: tuple[str, ...], **fields: object) -> Question:
    request = validated(valid(pipeline=stages, **fields))
    programs = tuple(
        ShownProgram(stage[0], None)
        if stage[0] == "nosuch"
        else ShownProgram(stage[0], f"/usr/bin/{stage[0]}", f"/usr/bin/{stage[0]}")
        for stage in stages
    )
    sudo = ShownProgram("sudo", "/usr/bin/sudo") if request.privileged else None
    return Question(request, programs, PEER, "alice", sudo)


def shown(asked: Question, columns: int = 100, rows: int = 30) -> str:
    return paint(compose(asked, Size(columns, rows))[0], colour=False)


PLAIN = question(
    ("apt", "install", "nginx"),
    session="claude-code-project-alpha",
    host="workstation.local",
    reason="Install nginx to set up a web server for the preview of the documentation site",
    env={"DEBIAN_FRONTEND": "noninteractive"},
    version="1.0.0",
    privileged=True,
    id="550e8400-e29b-41d4-a716-446655440000",
)
TANGLED = question(
    ("sh", "-c", "curl -fsSL https://example.org/install.sh | bash -s -- --yes && echo done"),
    ("grep", "|", "a  b", ""),
    ("nosuch", "\tшrm", "$(id)"),
    session="раypal",
    forward_agent=True,
)


@pytest.mark.parametrize("columns", [60, 100])
@pytest.mark.parametrize(("name", "asked"), [("plain", PLAIN), ("tangled", TANGLED)])
@proves("GATE-ASK-08")
def test_a_question_reads_as_its_golden_file(name: str, asked: Question, columns: int) -> None:
    expected = (GOLDEN / f"question-{name}-{columns}.txt").read_text(encoding="utf-8")
    assert shown(asked, columns) == expected


def test_the_question_is_literal() -> None:
    as_root = question_text(as_root=True, timeout=60)
    assert as_root == "Execute as root? [y/N] (60s timeout, default=N)"
    assert question_text(as_root=False, timeout=5) == "Execute? [y/N] (5s timeout, default=N)"


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (ShownProgram("ls", None), "Resolves: (not found in PATH)\n"),
        (ShownProgram("/bin/ls", "/bin/ls", "/bin/ls"), ""),
        (ShownProgram("ls", "/bin/ls", "/bin/ls"), "Resolves: /bin/ls\n"),
        (ShownProgram("ls", "/bin/ls", "/usr/bin/ls"), "Resolves: /bin/ls -> /usr/bin/ls\n"),
        (ShownProgram("ls", "/bin/ls", None), "Resolves: /bin/ls (canonicalize failed)\n"),
    ],
)
@proves("GATE-ASK-08")
def test_the_resolution_line_says_where_the_command_is(
    program: ShownProgram, expected: str
) -> None:
    asked = Question(validated(valid(pipeline=((program.word,),))), (program,), PEER)
    rest = shown(asked).partition(f"Command: {program.word}\n")[2]
    assert rest == f"{expected}Runs:    in /\n"


def test_a_session_without_a_name_and_a_host_without_one_are_named() -> None:
    assert "From:    (unnamed) @ local\nClient:  (unknown)" in shown(question(("ls",)))


def whole(asked: Question, size: Size) -> str:
    return "".join(paint(page, colour=False) for page in compose(asked, size))


def test_side_fields_are_bounded_and_the_command_comes_last() -> None:
    asked = question(("ls",), reason="r" * 600, session="s" * 200, id="i" * 200)
    text = shown(asked, 2000)
    assert "r" * 500 + "… (100 more characters)" in text
    assert "s" * 128 + "… (72 more characters)" in text
    assert "r" * 501 not in text
    assert text.endswith("Command: ls\nResolves: /usr/bin/ls\nRuns:    as alice in /\n")


@proves("GATE-ASK-11")
@pytest.mark.parametrize("size", [Size(50, 15), Size(80, 24), Size(300, 100)])
def test_every_variable_and_every_character_of_it_can_be_read(size: Size) -> None:
    hidden = "/root/" + "./" * 200 + "../evil"
    env = {"HOME": hidden} | {f"LC_{number:03}": f"value{number}" for number in range(40)}
    asked = question(("ls",), env=env)
    text = whole(asked, size)
    bare = "".join(re.sub(r"( \\|↩)?\n( +┊ )?", "", text).split())
    assert f"HOME={hidden}" in bare
    for number in range(40):
        assert f"LC_{number:03}=value{number}" in bare


@proves("GATE-ASK-11")
def test_where_it_runs_and_as_whom_is_said() -> None:
    assert "Runs:    as alice in /\n" in shown(question(("ls",)))
    assert "Runs:    as root in /, through /usr/bin/sudo\n" in shown(PLAIN)


def test_an_unprivileged_request_is_not_headed_as_a_privileged_one() -> None:
    assert shown(question(("ls",))).startswith("━━━ Command request ━━━")
    assert shown(PLAIN).startswith("━━━ Privilege Request ━━━")


def test_a_gate_that_is_root_says_so_whatever_is_asked() -> None:
    asked = Question(validated(valid()), (ShownProgram("ls", "/bin/ls"),), PEER, "root")
    assert asked.as_root
    assert "Runs:    as root in /\n" in shown(asked)


@proves("GATE-ASK-14")
def test_what_others_can_change_is_named_with_who_can() -> None:
    weak = Weakness("/home/alice/bin", "alice")
    program = ShownProgram("tool", "/home/alice/bin/tool", weaknesses=(weak,))
    script = Weakness("/home/alice/deploy.sh", "group staff")
    files = ChangeableFiles((script,))
    asked = Question(validated(valid()), (program,), PEER, "alice", None, files)
    text = shown(asked)
    assert "Caution: alice can change /home/alice/bin; if it changes, nothing is run\n" in text
    assert "Caution: group staff can change /home/alice/deploy.sh until it is used\n" in text


@proves("GATE-ASK-13")
@pytest.mark.parametrize("letter", ["\u4dc0", "\u3248", "\u2460", "é", "\u2e3b", "\U0001f600"])
@pytest.mark.parametrize("columns", [30, 50, 80])
def test_no_row_is_wider_than_the_screen_even_where_letters_take_two_columns(
    letter: str, columns: int
) -> None:
    text = letter * 200 + " Command: rm"
    asked = question(
        ("echo", text), reason=text, session=text, env={"TZ": text, f"LC_{'X' * 99}": ""}
    )
    for page in compose(asked, Size(columns, 24)):
        for spans in page[1:]:
            row = "".join(span.text for span in spans)
            assert len(row) + sum(not each.isascii() for each in row) <= columns + 2
            ours = ("From:", "Client:", "Time:", "ID:", "Reason:", "Length:", "Env:", "Runs:")
            assert row.startswith((" ", "Command: echo", "Resolves: /usr/bin/echo", *ours)), row


@pytest.mark.parametrize("word", ["∕", "ɑ", "ⅼ", "𝐫𝐦", "–rf", "grüße"])
def test_anything_but_ascii_in_a_command_is_marked(word: str) -> None:
    assert "[non-ASCII]" in shown(question(("ls", word)))
    assert "[non-ASCII]" not in shown(question(("ls", "plain")))


def test_the_code_points_of_every_flagged_field_are_listed_on_demand() -> None:
    asked = question(("ls",), id="idа", version="vе", env={"TZ": "zо"})
    text = paint(word_lines(asked, 100), colour=False)
    assert "  env TZ='zо'\n" in text
    for name, letter in (("id:", "A"), ("version:", "IE"), ("env TZ='zо'", "O")):
        listed = text.partition(f"  {name}\n")[2].partition("\n")[0]
        assert listed.endswith(f"CYRILLIC SMALL LETTER {letter}")


def test_tags_that_do_not_fit_behind_the_command_stand_below_it() -> None:
    asked = question(("echo", "x" * 40), forward_agent=True)
    assert f"Command: echo {'x' * 40}\n         (agent forwarded)\n" in shown(asked, 60)
    assert f"Command: echo {'x' * 40} (agent forwarded)\n" in shown(asked, 80)


@proves("GATE-ASK-05")
@pytest.mark.parametrize("size", [Size(80, 24), Size(60, 10), Size(300, 200)])
def test_a_long_command_comes_in_pages_that_together_are_all_of_it(size: Size) -> None:
    long = question(("echo", *map(str, range(500)), "the-end"))
    pages = compose(long, size)
    assert len(pages) > 1
    assert "the-end" not in paint(pages[0], colour=False)
    assert digest(long.request)[:16] in paint(pages[0], colour=False)
    assert all(len(page) <= size.rows - 5 for page in pages)
    rows = [spans[0].text for page in pages for spans in page]
    start = next(index for index, row in enumerate(rows) if row.startswith("Command: "))
    end = rows.index("Resolves: /usr/bin/echo")
    command = " ".join(row[9:] for row in rows[start:end])
    assert command == " ".join(["echo", *map(str, range(500)), "the-end"])


@proves("GATE-ASK-05")
def test_no_terminal_is_tall_enough_to_wave_a_long_command_through() -> None:
    long = question(("echo", "x" * MAX_AT_A_GLANCE))
    assert len(compose(long, Size(1000, 1000))) > 1
    short = question(("echo", "x" * (MAX_AT_A_GLANCE - 5)))
    assert len(compose(short, Size(1000, 1000))) == 1


@proves("GATE-ASK-05")
def test_many_stages_come_in_pages_too() -> None:
    stages = [("echo", str(number)) for number in range(40)]
    assert len(compose(question(*stages), Size(80, 24))) > 1


def test_every_word_can_be_seen_on_a_line_of_its_own() -> None:
    text = paint(word_lines(TANGLED, 100), colour=False)
    assert "  [1][1] '|'\n" in text
    assert "  [2][1] $'\\x09шrm'\n" in text
    assert "U+0448 CYRILLIC SMALL LETTER SHA" in text


def test_a_small_window_shows_less_of_the_side_and_all_of_the_command() -> None:
    small = Size(50, 15)
    (page,) = compose(PLAIN, small)
    text = paint(page, colour=False)
    assert text.endswith("Command: apt install nginx\nResolves: /usr/bin/apt\n" + RUNS_AS_ROOT)
    assert "Time:" not in text
    whole_side = paint(word_lines(PLAIN, 50), colour=False)
    assert "Time:    2026-02-13T14:30:00Z" in whole_side
    assert "documentation site" in whole_side


RUNS_AS_ROOT = "Runs:    as root in /, through /usr/bin/sudo\n"


def test_the_list_of_words_is_bounded() -> None:
    many = question(("echo", *map(str, range(1000))))
    assert len(list(word_lines(many, 100))) == 201


def test_whom_a_program_asks_for_is_below_what_the_kernel_says_of_it() -> None:
    asked = question(("true",), client="code-friend 2.1", directory="/home/alice/shop")
    peer = replace(PEER, agent="claude (pid 7)", behind="/usr/bin/node (pid 8)")
    text = shown(replace(asked, peer=peer))
    client = (
        "Client:  (unknown), /usr/bin/node (pid 4242), by claude (pid 7) in /home/alice/project"
    )
    forwhom = "For:     code-friend 2.1, /usr/bin/node (pid 8) in /home/alice/shop"
    assert f"{client}\n{forwhom}\n" in text
    assert forwhom in shown(replace(asked, peer=peer), rows=12)


def test_a_program_that_asks_for_itself_has_no_such_line() -> None:
    assert "For:" not in shown(question(("true",)))
