"""Frames of the runs wire: thirty bad ones, and every good one there and back."""

import json
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.wire.runs import Refusal, decode_request, encode
from stringd.wire.runs import messages as m
from stringd.wire.runs.codec import decode_message
from stringd.wire.runs.requests import ClientMessage, StartRun
from stringd.wire.runs.types import Usage
from tests.requirements import proves

KNOWN = [
    "prepare_run",
    "start_run",
    "continue_run",
    "stop_run",
    "user_input",
    "question_response",
    "permission_decision",
    "update_policy",
    "steer_run",
    "subscribe",
    "unsubscribe",
    "list_strategies",
    "list_runs",
    "list_providers",
    "get_available_models",
    "register_provider",
    "unregister_provider",
    "set_credential",
    "list_mcp_servers",
    "update_mcp_server",
    "trash_list",
    "trash_restore",
    "trash_clear",
    "hub_list",
    "hub_install",
    "hub_update",
    "hub_remove",
    "ping",
]

BAD: list[tuple[str | bytes, str, str]] = [
    ("", "PARSE_ERROR", "Invalid JSON"),
    ("{", "PARSE_ERROR", "Invalid JSON"),
    ("not json", "PARSE_ERROR", "Invalid JSON"),
    ('{"type":"ping"} x', "PARSE_ERROR", "Invalid JSON"),
    ('{"type":"nope"', "PARSE_ERROR", "Invalid JSON"),
    ('{"type":"ping",}', "PARSE_ERROR", "Invalid JSON"),
    ("{'type':'ping'}", "PARSE_ERROR", "Invalid JSON"),
    ("NaN", "PARSE_ERROR", "Invalid JSON"),
    (b"\xff\xfe", "PARSE_ERROR", "Invalid JSON"),
    ("[" * 20_000, "PARSE_ERROR", "Invalid JSON"),
    ("5", "VALIDATION_ERROR", ": Expected object, received number"),
    ("null", "VALIDATION_ERROR", ": Expected object, received null"),
    ("[]", "VALIDATION_ERROR", ": Expected object, received array"),
    ('"ping"', "VALIDATION_ERROR", ": Expected object, received string"),
    ("true", "VALIDATION_ERROR", ": Expected object, received boolean"),
    ("{}", "VALIDATION_ERROR", "type: Invalid discriminator value. Expected 'prepare_run' | "),
    ('{"type":"start_strategy"}', "VALIDATION_ERROR", "type: Invalid discriminator value."),
    ('{"type":"stop_strategy"}', "VALIDATION_ERROR", "type: Invalid discriminator value."),
    ('{"type":"get_run","runId":"x"}', "VALIDATION_ERROR", "type: Invalid discriminator value."),
    ('{"type":"load_session"}', "VALIDATION_ERROR", "type: Invalid discriminator value."),
    ('{"type":5}', "VALIDATION_ERROR", "type: Invalid discriminator value."),
    ('{"type":"PING"}', "VALIDATION_ERROR", "type: Invalid discriminator value."),
    ('{"type":"start_run"}', "VALIDATION_ERROR", "runId: Required"),
    (
        '{"type":"start_run","runId":""}',
        "VALIDATION_ERROR",
        "runId: String must contain at least 1 character(s)",
    ),
    (
        '{"type":"start_run","runId":null}',
        "VALIDATION_ERROR",
        "runId: Expected string, received null",
    ),
    ('{"type":"continue_run","runId":"r"}', "VALIDATION_ERROR", "input: Required"),
    (
        '{"type":"user_input","runId":"r","agentName":"a","text":5}',
        "VALIDATION_ERROR",
        "text: Expected string, received number",
    ),
    (
        '{"type":"steer_run","runId":"r","text":""}',
        "VALIDATION_ERROR",
        "text: String must contain at least 1 character(s)",
    ),
    (
        '{"type":"permission_decision","runId":"r","permissionRequestId":"p","decision":"maybe"}',
        "VALIDATION_ERROR",
        (
            "decision: Invalid enum value. Expected 'allow' | 'deny' | 'allow-session' | "
            "'deny-session', received 'maybe'"
        ),
    ),
    (
        '{"type":"prepare_run","runId":"r","budget":{"tokens":0,"seconds":0,"cost":"x"}}',
        "VALIDATION_ERROR",
        (
            "budget.tokens: Number must be greater than or equal to 1; "
            "budget.seconds: Number must be greater than 0; "
            "budget.cost: Expected number, received string"
        ),
    ),
    (
        '{"type":"steer_run","runId":"r","text":"x","mode":"now"}',
        "VALIDATION_ERROR",
        "mode: Invalid enum value. Expected 'call' | 'steer', received 'now'",
    ),
    (
        '{"type":"set_credential","providerId":"p","credentialType":"key"}',
        "VALIDATION_ERROR",
        ("credentialType: Invalid enum value. Expected 'api' | 'oauth' | 'custom', received 'key'"),
    ),
    (
        '{"type":"update_policy","runId":"r","mode":"exec"}',
        "VALIDATION_ERROR",
        "mode: Invalid enum value. Expected 'read' | 'write', received 'exec'",
    ),
    (
        '{"type":"update_policy","runId":"r","mode":"read","allow":["a",5]}',
        "VALIDATION_ERROR",
        "allow.1: Expected string, received number",
    ),
    (
        '{"type":"prepare_run","cwd":"/"}',
        "VALIDATION_ERROR",
        "strategyPath: prepare_run requires runId or strategyPath",
    ),
    (
        '{"type":"set_credential","providerId":"p","credentialType":"custom","customData":[]}',
        "VALIDATION_ERROR",
        "customData: Expected object, received array",
    ),
    (
        '{"type":"user_input"}',
        "VALIDATION_ERROR",
        "runId: Required; agentName: Required; text: Required",
    ),
    (
        '{"type":"list_providers","live":"yes"}',
        "VALIDATION_ERROR",
        "live: Expected boolean, received string",
    ),
]


@proves("RUN-02", "RUN-03")
@pytest.mark.parametrize(("frame", "code", "text"), BAD)
def test_bad_frames_get_exact_refusals(frame: str | bytes, code: str, text: str) -> None:
    refusal = decode_request(frame)
    assert isinstance(refusal, Refusal)
    lead = "" if code == "PARSE_ERROR" else "Invalid message: "
    assert (refusal.code, refusal.message[: len(lead + text)]) == (code, lead + text)


@pytest.mark.parametrize("request_id", ["x", 7, None, [1], {"a": 1}, False])
def test_a_refused_frame_echoes_its_request_id_whatever_it_is(request_id: Any) -> None:
    refusal = decode_request(json.dumps({"type": "nope", "requestId": request_id}))
    assert isinstance(refusal, Refusal)
    assert refusal.request_id == request_id


def test_the_daemon_knows_exactly_the_protocols_requests_and_some_of_its_own() -> None:
    tags = [kind.__struct_config__.tag for kind in get_args(ClientMessage)]
    assert tags == [
        *KNOWN,
        "get_timeline",
        "delete_run",
        "remove_credential",
        "discover_strategies",
        "fork_run",
        "tool_answer",
        "list_decisions",
        "revoke_decision",
    ]


@pytest.mark.parametrize("form", [str, str.encode])
def test_half_a_character_is_replaced_and_the_request_taken(form: Any) -> None:
    frame = r'{"type":"start_run","runId":"r","requestId":"7","input":"hi \ud83dx \ud83d\ude00"}'
    taken = decode_request(form(frame))
    assert isinstance(taken, StartRun)
    assert (taken.input, taken.request_id) == ("hi \ufffdx \U0001f600", "7")


def test_a_refused_frame_with_half_a_character_echoes_its_request_id() -> None:
    refused = decode_request(r'{"type":"start_run","requestId":"7","input":"\ud83d"}')
    assert isinstance(refused, Refusal)
    assert (refused.code, refused.request_id) == ("VALIDATION_ERROR", "7")


def test_unknown_keys_are_ignored() -> None:
    message = decode_request('{"type":"prepare_run","strategyPath":"x","input":5,"zz":{}}')
    assert not isinstance(message, Refusal)


def test_absent_keys_are_omitted_never_null() -> None:
    frame = encode(m.AgentOutput(run_id="r", agent_name="a", text="", usage=Usage(), ts="t"))
    assert set(json.loads(frame)) == {"type", "ts", "runId", "agentName", "text", "usage"}


@pytest.mark.parametrize("kind", get_args(m.DaemonMessage), ids=lambda kind: kind.__name__)
def test_every_daemon_message_is_named_in_camel_case(kind: type[m.Message]) -> None:
    names = [field.encode_name for field in msgspec.structs.fields(kind)]
    assert all("_" not in name for name in names)
    assert names[:2] == ["ts", "requestId"]


def test_a_client_reads_what_the_daemon_writes() -> None:
    message = m.StrategyCompleted(run_id="r", result="x", usage=Usage(prompt_tokens=1), ts="t")
    assert decode_message(encode(message)) == message


@given(st.binary(max_size=200))
def test_no_bytes_break_the_decoder(frame: bytes) -> None:
    decode_request(frame)


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)


@given(st.sampled_from(KNOWN), st.dictionaries(st.sampled_from(["runId", "text", "input"]), _json))
def test_any_json_is_a_request_or_a_refusal_with_words(kind: str, fields: dict[str, Any]) -> None:
    answer = decode_request(json.dumps({"type": kind, **fields}))
    if isinstance(answer, Refusal):
        assert answer.message.startswith("Invalid")
