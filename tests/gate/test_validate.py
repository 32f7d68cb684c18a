import dataclasses
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate import validate
from stringd.gate.characters import is_clean
from stringd.gate.errors import RefusalError
from stringd.gate.instants import parse_instant
from stringd.gate.validate import ValidatedRequest
from stringd.wire.gate import Request, RequestAction
from tests.requirements import proves

TIME = "2026-02-13T14:30:00Z"
NOW = (parse_instant(TIME) or 0) + 10 * 10**9


def valid(**changes: Any) -> Request:
    fields: dict[str, Any] = {
        "pipeline": (("true",),),
        "id": "7",
        "time": TIME,
        "privileged": False,
    }
    return Request(**(fields | changes))


def validated(request: Request, **options: int) -> ValidatedRequest:
    return ValidatedRequest(request, fresh_id="fresh", now=NOW, **options)


def refusal(request: Request) -> str:
    with pytest.raises(RefusalError) as refused:
        validated(request)
    return str(refused.value)


# In the order of the protocol: each request also fails every check after its own.
LADDER: list[tuple[dict[str, Any], str]] = [
    ({"pipeline": ()}, "pipeline must not be empty"),
    ({"pipeline": (("a",), (), ("\x1b",))}, "pipeline stage 1 must not be empty"),
    (
        {"pipeline": (("a",), ("b", "\x1b"))},
        "pipeline[1][1] contains forbidden control/bidi characters",
    ),
    ({"env": {"A\x00": "\x1b"}}, "env key 'A\x00' contains forbidden characters"),
    ({"env": {"A": "\x1b"}}, "env value contains forbidden characters"),
    ({"reason": "\x1b"}, "reason contains forbidden control/bidi characters"),
    ({"session": "\x1b"}, "session contains forbidden control/bidi characters"),
    ({"host": "\x1b"}, "host contains forbidden control/bidi characters"),
    ({"version": "\x1b"}, "version contains forbidden control/bidi characters"),
    ({"id": "\x1b"}, "id contains forbidden control/bidi characters"),
    (
        {"forward_agent": True, "privileged": True},
        "forward_agent is only allowed for unprivileged commands",
    ),
    (
        {"pipeline": (("a",), ("-u", "bob")), "privileged": True},
        "pipeline[1][0] is not a command name",
    ),
    ({"time": ""}, "missing time field"),
    ({"time": "yesterday"}, "malformed time field"),
    ({"time": "2026-02-13T14:29:09Z"}, "request too old: 61s (max 60s)"),
    ({"time": "2026-02-13T14:30:16Z"}, "request time is in the future: 6s (max 5s)"),
    (
        {"env": {"LD_PRELOAD": "x", "SSH_AUTH_SOCK": "y"}},
        "SSH_AUTH_SOCK cannot be set in request env; use forward_agent instead",
    ),
    ({"env": {"LD_PRELOAD": "x"}}, "environment variable not allowed: LD_PRELOAD"),
]


@pytest.mark.parametrize(("changes", "message"), LADDER)
@proves("GATE-VAL-01")
def test_each_check_has_its_literal_message(changes: dict[str, Any], message: str) -> None:
    assert refusal(valid(**changes)) == message


@proves("GATE-VAL-01")
@pytest.mark.parametrize("first", range(len(LADDER) - 1))
def test_an_earlier_check_answers_before_a_later_one(first: int) -> None:
    merged: dict[str, Any] = {}
    for changes, _ in reversed(LADDER[first:]):
        merged = merged | changes
    # Where two rungs change one field, the earlier rung's value stands and fails first.
    assert refusal(valid(**merged)) == LADDER[first][1]


@proves("GATE-VAL-01")
def test_one_stage_is_checked_whole_before_the_next() -> None:
    assert refusal(valid(pipeline=(("\x1b",), ()))).startswith("pipeline[0][0]")


@given(st.sampled_from(["reason", "session", "host", "version", "id"]), st.characters())
@proves("GATE-VAL-02")
def test_accepted_fields_are_clean_and_clean_fields_are_accepted(field: str, mark: str) -> None:
    request = valid(**{field: f"a{mark}b"})
    if is_clean(mark):
        assert getattr(validated(request), field) == f"a{mark}b"
    else:
        assert refusal(request) == f"{field} contains forbidden control/bidi characters"


@pytest.mark.parametrize("field", validate.SCANNED_FIELDS)
def test_mutation_leaving_a_field_out_of_the_scan_lets_a_lie_through(
    field: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The scan above is what refuses: without the field in it, the escape is accepted."""
    rest = tuple(name for name in validate.SCANNED_FIELDS if name != field)
    monkeypatch.setattr(validate, "SCANNED_FIELDS", rest)
    assert "\x1b" in getattr(validated(valid(**{field: "\x1b[8m"})), field)


@proves("GATE-VAL-03")
def test_the_agent_is_for_unprivileged_commands_only() -> None:
    assert refusal(valid(forward_agent=True, privileged=True)).startswith("forward_agent is only")
    assert validated(valid(forward_agent=True)).forward_agent is True


@proves("GATE-TIME-02")
def test_the_future_bound_can_be_moved() -> None:
    ahead = valid(time="2026-02-13T14:31:10Z")
    assert validated(ahead, max_future=60).time == "2026-02-13T14:31:10Z"


@pytest.mark.parametrize("word", ["-u", "--", "-", "A=b", "LD_PRELOAD=/x", "/opt/a=b"])
@proves("GATE-VAL-05")
def test_sudo_is_given_no_word_it_would_take_for_its_own(word: str) -> None:
    privileged = valid(pipeline=((word, "id"),), privileged=True)
    assert refusal(privileged) == "pipeline[0][0] is not a command name"
    assert validated(valid(pipeline=((word, "id"),))).pipeline == ((word, "id"),)


@pytest.mark.parametrize("name", ["LANG", "TZ", "HOME", "DEBIAN_FRONTEND", "TERM", "LC_ALL", "LC_"])
@proves("GATE-ENV-01")
def test_allowlisted_variables_pass(name: str) -> None:
    assert validated(valid(env={name: "x"})).env == {name: "x"}


@pytest.mark.parametrize(
    "name",
    ["PATH", "LD_PRELOAD", "IFS", "BASH_ENV", "USER", "lang", "LC_A=B", "LC_ A", "XLC_ALL", ""],
)
@proves("GATE-ENV-01")
def test_every_other_variable_is_refused_by_name(name: str) -> None:
    assert refusal(valid(env={name: "x"})) == f"environment variable not allowed: {name}"


@proves("GATE-REQ-01")
def test_an_absent_id_is_replaced_and_an_empty_one_stays() -> None:
    assert validated(valid(id=None)).id == "fresh"
    assert validated(valid(id="")).id == ""


def test_an_empty_word_is_allowed() -> None:
    assert validated(valid(pipeline=(("echo", ""), ("",)))).pipeline == (("echo", ""), ("",))


def test_control_actions_need_no_pipeline() -> None:
    assert validated(valid(pipeline=(), action=RequestAction.PING)).pipeline == ()


def test_a_control_action_runs_nothing_so_rules_for_commands_do_not_concern_it() -> None:
    odd = valid(
        pipeline=(),
        action=RequestAction.STOP,
        privileged=True,
        forward_agent=True,
        env={"LD_PRELOAD": "x"},
    )
    assert validated(odd).action is RequestAction.STOP
    assert refusal(dataclasses.replace(odd, time="")) == "missing time field"
    assert refusal(dataclasses.replace(odd, reason="\x1b")).startswith("reason contains")


def test_a_validated_request_cannot_be_made_or_changed_in_any_other_way() -> None:
    request = validated(valid(env={"TZ": "UTC"}))
    with pytest.raises(dataclasses.FrozenInstanceError):
        request.pipeline = (("rm",),)  # type: ignore[misc]
    with pytest.raises(TypeError):
        request.env["TZ"] = "x"  # type: ignore[index]
    with pytest.raises(TypeError):
        dataclasses.replace(request, reason="x")


def test_later_changes_to_the_raw_request_do_not_reach_the_validated_one() -> None:
    env = {"TZ": "UTC"}
    request = validated(valid(env=env))
    env["LD_PRELOAD"] = "/x"
    assert dict(request.env) == {"TZ": "UTC"}
