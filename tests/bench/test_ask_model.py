"""A model that does tasks with checkable ends; here it is a script."""

from typing import Any

from bench.ask_model import MAX_TURNS, Attempt, FrozenTask, Way, measure, report
from bench.tokens import asked
from stringd.runs.models.port import ToolOffer

PING = FrozenTask("Ping it.", "POST /ping")
USAGE = {"promptTokens": 90, "completionTokens": 10}


def _way() -> Way:
    requests: list[str] = []

    def execute(name: str, arguments: dict[str, Any]) -> str:
        requests.append(f"POST /{name}")
        return str(arguments)

    return Way("typed", [ToolOffer("ping", "Ping.", {"type": "object"})], execute, requests)


def _call(name: str, **arguments: str) -> dict[str, Any]:
    return {"tools": [{"name": name, "args": arguments}], "usage": USAGE}


def test_a_task_succeeds_when_its_end_was_reached() -> None:
    script = [_call("ping"), {"text": "Done.", "usage": USAGE}]
    said = measure("demo/script", [_way()], [PING, PING], script=script)
    assert "| typed | 2 of 2 | 2.0 | 200 |" in said


def test_an_answer_without_the_deed_is_not_a_success() -> None:
    said = measure("demo/script", [_way()], [PING], script=[_call("pong"), "Done."])
    assert "| typed | 0 of 1 | 2.0 | – |" in said


def test_a_model_that_never_ends_is_stopped() -> None:
    said = measure("demo/script", [_way()], [PING], script=[_call("ping")])
    assert f"| typed | 0 of 1 | {MAX_TURNS}.0 | – |" in said


def test_failures_are_paid_for_by_successes() -> None:
    said = report([("one", [Attempt(True, 2, 100), Attempt(False, 4, 300)])], "demo/x")
    assert "| one | 1 of 2 | 3.0 | 400 |" in said


def test_a_model_that_nobody_offers_is_said_so() -> None:
    assert measure("nobody/x", [_way()], [PING]).startswith("nobody/x could not be asked: ")


def test_the_frozen_tasks_run_against_the_real_daemon() -> None:
    script = [_call("string", cmd="issues.close 398"), _call("issues_close", issue="398"), "Done."]
    said = asked("demo/script", script=script)
    # Of the ten tasks the script knows one, and each way has one of its two calls.
    assert "| `string` | 1 of 10 | 3.0 |" in said
    assert "| one tool for each action | 1 of 10 | 3.0 |" in said
