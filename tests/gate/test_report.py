from stringd.gate.capture import Capture
from stringd.gate.display import paint
from stringd.gate.pipeline import Outcome
from stringd.gate.report import error_line, outcome_lines
from tests.gate.streams import fill
from tests.gate.test_validate import valid, validated

ASKED = validated(valid(pipeline=(("apt", "install"),)))


def captured(data: bytes) -> Capture:
    capture = Capture()
    fill(capture, data)
    return capture


def echoed(codes: tuple[int, ...], stdout: bytes, *stderrs: bytes) -> str:
    outcome = Outcome(codes, captured(stdout), tuple(map(captured, stderrs)), 12)
    return paint(outcome_lines(ASKED, outcome, 60), colour=False)


def test_a_silent_success_is_one_line() -> None:
    assert echoed((0,), b"", b"") == "exit 0  12 ms  apt install\n"


def test_the_first_lines_of_each_stream_are_shown() -> None:
    many = b"".join(b"%d\n" % number for number in range(12))
    shown = "".join(f"│ {number}\n" for number in range(10))
    assert echoed((2,), many, b"oops") == (
        "exit 2  12 ms  apt install\n"
        f"== stdout == (12 lines, truncated)\n{shown}"
        "== stderr == (1 line)\n│ oops\n"
    )


def test_a_pipeline_names_its_stages_and_signals() -> None:
    assert echoed((-13, 0), b"", b"", b"x\n") == (
        "exit [-1, 0]  stage 0: signal 13  12 ms  apt install\n== stderr[1] == (1 line)\n│ x\n"
    )


def test_a_long_line_is_cut_to_the_terminal() -> None:
    last = echoed((0,), b"x" * 100, b"").splitlines()[-1]
    assert last == "│ " + "x" * 56 + "…"


def test_a_large_output_is_not_counted_to_its_end() -> None:
    assert "(more than 262145 lines, truncated)" in echoed((0,), b"\n" * 262_145, b"")


def test_lines_beyond_the_shown_head_are_counted() -> None:
    assert "(20000 lines, truncated)" in echoed((0,), b"x\n" * 20_000, b"")


def test_an_error_names_its_command() -> None:
    shown = paint([error_line(ASKED, "no\x1b", 80)], colour=False)
    assert shown == "error: no\\x1b  apt install\n"


def test_no_command_is_longer_than_its_row() -> None:
    asked = validated(valid(pipeline=(("echo", "䷀" * 200),)))
    (shown, _) = paint([error_line(asked, "no", 40)], colour=False).split("\n")
    assert len(shown) <= 40
    assert shown.endswith("…")
