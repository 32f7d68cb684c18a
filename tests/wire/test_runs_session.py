"""Each request of a client is matched with its answer, once."""

import pytest
from msgspec import UNSET

from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.names import is_called, new_run_id
from stringd.wire.runs.session import RunsSession


def test_answers_find_their_requests_in_any_order_and_once() -> None:
    session = RunsSession("x")
    first, sent = session.ask(r.Ping())
    second, _ = session.ask(r.ListRuns())
    assert (first, sent.request_id, second) == ("x1", "x1", "x2")
    assert session.answered(m.Pong(request_id="x2")) == "x2"
    assert session.answered(m.Pong(request_id="x1")) == "x1"
    assert session.answered(m.Pong(request_id="x1")) is None
    assert session.answered(m.Pong(request_id="y1")) is None
    assert session.answered(m.Pong()) is None


def test_the_first_event_of_a_run_answers_what_began_it_even_without_its_id() -> None:
    session = RunsSession("x")
    session.ask(r.Ping())
    begun, _ = session.ask(r.StartRun(run_id="r", input=""))
    step = m.StepStarted(run_id="other", step_name="s", message="")
    assert session.answered(step) is None
    step.run_id = "r"
    assert session.answered(step) == begun
    assert session.answered(step) is None


def test_a_forgotten_request_has_no_answer() -> None:
    session = RunsSession("x")
    asked, _ = session.ask(r.ContinueRun(run_id="r", input=""))
    session.forget(asked)
    session.forget(asked)
    ended = m.StepStarted(run_id="r", step_name="s", message="", request_id=UNSET)
    assert session.answered(ended) is None


@pytest.mark.parametrize(
    ("path", "begins"),
    [("/a/my flow.yaml", "my-flow-"), (".hidden", "hidden-"), ("x" * 99, "x" * 40 + "-")],
)
def test_a_run_is_called_like_its_file(path: str, begins: str) -> None:
    found = new_run_id(path)
    assert found.startswith(begins)
    assert len(found) == len(begins) + 6


def test_a_strategy_is_called_by_its_name_its_label_or_its_file() -> None:
    from stringd.wire.runs.catalog import DiscoveredStrategy

    known = DiscoveredStrategy(name="n", label="@a/b > n", path="/x/file.v2.yaml", origin="cwd")
    called = [name for name in ("n", "@a/b > n", "file.v2", "file", "x") if is_called(known, name)]
    assert called == ["n", "@a/b > n", "file.v2"]
