from stringd.gate.capture import Capture
from stringd.gate.display import paint
from stringd.gate.execute import Outcome
from stringd.gate.report import audit_line, error_line, outcome_lines
from tests.gate.streams import fill


def captured(data: bytes) -> Capture:
    capture = Capture()
    fill(capture, data)
    return capture


def echoed(codes: tuple[int, ...], stdout: bytes, *stderrs: bytes) -> str:
    outcome = Outcome(codes, captured(stdout), tuple(map(captured, stderrs)), 12)
    return paint(outcome_lines("seven", outcome, 40), colour=False)


def test_a_silent_success_is_one_line() -> None:
    assert echoed((0,), b"", b"") == "exit 0  seven\n"


def test_three_lines_of_each_stream_are_shown() -> None:
    assert echoed((2,), b"a\nb\nc\nd\n", b"oops") == (
        "exit 2  seven\n"
        "== stdout == (4 lines, truncated)\n│ a\n│ b\n│ c\n"
        "== stderr == (1 line)\n│ oops\n"
    )


def test_a_pipeline_names_its_stages_and_signals() -> None:
    assert echoed((-13, 0), b"", b"", b"x\n") == (
        "exit [-1, 0]  stage 0: signal 13  seven\n== stderr[1] == (1 line)\n│ x\n"
    )


def test_a_long_line_is_cut_to_the_terminal() -> None:
    last = echoed((0,), b"x" * 100, b"").splitlines()[-1]
    assert last == "│ " + "x" * 37 + "…"


def test_a_large_output_is_not_counted_to_its_end() -> None:
    assert "(more than 262145 lines, truncated)" in echoed((0,), b"\n" * 262_145, b"")


def test_lines_beyond_the_shown_head_are_counted() -> None:
    assert "(20000 lines, truncated)" in echoed((0,), b"x\n" * 20_000, b"")


def test_an_error_names_its_request() -> None:
    assert paint([error_line("seven", "no\x1b")], colour=False) == "error: no\\x1b  seven\n"


def test_an_audit_record_reads_as_one_line() -> None:
    record: dict[str, object] = {
        "time": "t",
        "event": "finished",
        "id": "seven\x1b",
        "exit_codes": [0, 1],
        "note": "",
    }
    assert audit_line(record) == "t  finished  seven\\x1b  exit_codes=[0, 1]"
