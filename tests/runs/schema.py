"""What a strict client accepts, written by hand from the protocol, not from our own types.

`problems(message)` lists why such a client would drop a message; an empty list is a good message.
"""

import re
from collections.abc import Callable, Mapping
from typing import Any

Check = Callable[[Any], bool]

_ISO = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")


def text(value: Any) -> bool:
    return isinstance(value, str)


def number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def flag(value: Any) -> bool:
    return isinstance(value, bool)


def iso(value: Any) -> bool:
    return isinstance(value, str) and _ISO.fullmatch(value) is not None


def anything(_value: Any) -> bool:
    return True


def mapping(value: Any) -> bool:
    return isinstance(value, dict)


def one_of(*choices: str) -> Check:
    return lambda value: value in choices


def items(check: Check) -> Check:
    return lambda value: isinstance(value, list) and all(map(check, value))


def nullable(check: Check) -> Check:
    return lambda value: value is None or check(value)


def fields(**checks: Check) -> Check:
    """An object; a name ending in `_` may be absent. Null never stands for absence."""

    def check(value: Any) -> bool:
        return isinstance(value, dict) and not _wrong(value, checks)

    return check


def _wrong(value: Mapping[str, Any], checks: Mapping[str, Check]) -> list[str]:
    wrong = []
    for name, check in checks.items():
        key = name.removesuffix("_")
        if key not in value:
            if not name.endswith("_"):
                wrong.append(f"{key}: missing")
        elif not check(value[key]):
            wrong.append(f"{key}: {value[key]!r}")
    return wrong


STATUS = one_of("pending", "running", "completed", "error", "cancelled")
USAGE = fields(promptTokens=number, completionTokens=number)
CONTEXT_USAGE = fields(
    totalTokens=number,
    inputTokens_=number,
    outputTokens_=number,
    inputTokenDetails_=fields(
        noCacheTokens_=number, cacheReadTokens_=number, cacheWriteTokens_=number
    ),
    outputTokenDetails_=fields(textTokens_=number, reasoningTokens_=number),
)
RESULT = fields(text=text, usage=USAGE, contextUsage_=CONTEXT_USAGE, finishReason=text)
RECORD = fields(
    id=text,
    agentName=text,
    createdAt=iso,
    userMessage=fields(role=one_of("user"), content=anything),
    responseMessages=items(fields(role=one_of("assistant", "tool"), content=anything)),
    text=text,
    usage=USAGE,
    contextUsage_=CONTEXT_USAGE,
    finishReason=text,
    status_=one_of("active", "superseded"),
    supersededBy_=text,
)
RETENTION = fields(
    id=text,
    agentName=text,
    createdAt=iso,
    kind=one_of("compaction"),
    reason=one_of("context-window", "record-count"),
    trigger=fields(
        model_=text,
        contextUsage_=CONTEXT_USAGE,
        tokenLimit_=number,
        contextWindow_=number,
        maxInputTokens_=number,
        ratio_=number,
        thresholdRatio_=number,
        activeRecordCount_=number,
        recordThreshold_=number,
    ),
    recordsCompacted=number,
    recordsRetained=number,
    summaryRecord=RECORD,
    supersededRecordIds=items(text),
    insertBeforeRecordId_=text,
)
HISTORY = fields(
    records=items(RECORD),
    retentionEvents=items(RETENTION),
    inputs=items(fields(text=text, beforeRecordId_=text)),
)
MCP_SERVER = fields(
    id=text,
    source=one_of("global", "workspace", "strategy"),
    transport=one_of("http", "sse", "stdio"),
    enabled=flag,
    enabledByDefault=flag,
    connected_=flag,
    toolCount=whole,
    assignedAgents=items(text),
    error_=text,
)
MODEL = {
    "id": text,
    "name_": text,
    "contextWindow_": number,
    "maxInputTokens_": number,
    "maxOutputTokens_": number,
}
_MCP = fields(serverId=text, toolName=text)
_STREAM: dict[str, dict[str, Check]] = {
    "step-start": {"note_": text},
    "text": {"text": text},
    "thinking-start": {"id": text},
    "thinking": {"id": text, "text": text},
    "thinking-end": {"id": text},
    "tool-call": {"toolCallId": text, "toolName": text, "args": text, "mcp_": _MCP},
    "tool-result": {
        "toolCallId": text,
        "toolName": text,
        "output": text,
        "status": one_of("completed", "error"),
        "error_": text,
        "mcp_": _MCP,
    },
    "retention": {"event": RETENTION},
    "done": {"result": RESULT},
}


def stream_event(value: Any) -> bool:
    checks = _STREAM.get(value.get("type", "")) if isinstance(value, dict) else None
    return checks is not None and not _wrong(value, checks)


_ERROR_INFO = fields(code=text, message=text)
_SEQ: dict[str, Check] = {"runId": text, "seq": whole}

MESSAGES: dict[str, dict[str, Check]] = {
    "pong": {},
    "error": {"code": text, "message": text},
    "run_prepared": {
        "runId": text,
        "strategyName": text,
        "agents": items(text),
        "flowTree": fields(name=text, type=text, steps=items(mapping)),
        "conversation": HISTORY,
        "mcpServers": items(MCP_SERVER),
    },
    "strategy_list": {
        "runs": items(
            fields(
                runId=text,
                strategyName=text,
                status=STATUS,
                startedAt=iso,
                completedAt_=iso,
                queuePosition_=whole,
            )
        )
    },
    "run_list": {
        "runs": items(
            fields(
                runId=text,
                cwd=text,
                strategyName=text,
                strategyPath=text,
                startedAt=iso,
                completedAt=nullable(iso),
                status=STATUS,
            )
        )
    },
    "provider_list": {
        "providers": items(
            fields(
                id=text,
                name=text,
                credentialType=one_of("api", "oauth", "custom", "none"),
                authStatus=one_of("none", "configured"),
                models=items(fields(**MODEL)),
                modelsSource=one_of("catalog", "live", "merged", "error"),
                fetchedAt_=iso,
                error_=text,
                isCustom=flag,
            )
        )
    },
    "available_models": {
        "models": items(
            fields(
                **MODEL,
                hasCredentials=flag,
                providers=items(text),
                configuredProviders=items(text),
            )
        )
    },
    "provider_registered": {"providerId": text},
    "provider_unregistered": {"providerId": text},
    "credential_set": {
        "providerId": text,
        "credentialType": one_of("api", "oauth", "custom"),
    },
    "credential_removed": {"providerId": text, "removed": flag},
    "mcp_server_list": {"servers": items(MCP_SERVER)},
    "trash_list_result": {
        "workspaces": items(fields(cwd=text, entries=items(mapping))),
        "totalEntries": whole,
        "totalBytes": whole,
    },
    "trash_restore_result": {"restored": text, "from": text},
    "trash_clear_result": {"cleared": whole, "bytesFreed": whole},
    "hub_packages": {"operation": one_of("list", "install", "update", "remove")},
    "strategy_started": {
        **_SEQ,
        "strategyName": text,
        "agents": items(text),
        "flowTree": mapping,
    },
    "strategy_completed": {**_SEQ, "result": text, "usage": USAGE},
    "strategy_error": {**_SEQ, "error": _ERROR_INFO},
    "step_started": {**_SEQ, "stepName": text, "message": text},
    "step_completed": {**_SEQ, "stepName": text, "result": RESULT},
    "agent_output": {
        **_SEQ,
        "agentName": text,
        "model_": text,
        "contextWindow_": number,
        "text": text,
        "usage": USAGE,
        "contextUsage_": CONTEXT_USAGE,
    },
    "agent_streaming": {
        **_SEQ,
        "agentName": text,
        "model_": text,
        "contextWindow_": number,
        "event": stream_event,
    },
    "steer_queued": {**_SEQ, "text": text},
    "request_input": {**_SEQ, "agentName": text, "prompt_": text},
    "request_question": {
        **_SEQ,
        "requestId": text,
        "agentName": text,
        "toolName": text,
        "question": text,
    },
    "request_permission": {
        **_SEQ,
        "requestId": text,
        "agentName": text,
        "toolName_": text,
        "operation": one_of("fs.read", "fs.write", "fs.exec"),
        "resource": text,
        "reason": one_of("policy-ask", "policy-deny-override"),
        "details_": mapping,
    },
    "policy_updated": {**_SEQ, "tool": text, "policies": items(fields(name=text))},
}

_FORK = fields(runId=text, path=text, step=text)

OPT_IN: dict[str, dict[str, Check]] = {
    "steer_delivered": {"runId": text, "text": text, "agentName": text},
    "steer_undelivered": {"runId": text, "text": text},
    "tool_asked": {
        "runId": text,
        "callId": text,
        "agentName": text,
        "toolName": text,
        "args": mapping,
    },
    "run_timeline": {
        "run": mapping,
        "conversation": HISTORY,
        "waiting": items(mapping),
        "result_": text,
        "error_": _ERROR_INFO,
        "steps": items(fields(path=text, name=text, completedAt=iso)),
        "forkedFrom_": _FORK,
    },
    "run_forked": {"runId": text, "forkedFrom": _FORK},
    "run_deleted": {"runId": text},
    "decision_list": {"runId": text, "decisions": items(mapping)},
    "discovered_strategies": {"strategies": items(mapping), "warnings": items(mapping)},
}
"""Types of ours; only a client that asked for them may get one."""


def problems(message: Any) -> list[str]:
    """Why a strict client would drop this message."""
    if not isinstance(message, dict):
        return ["not an object"]
    kind = message.get("type", "")
    checks = MESSAGES.get(kind) or OPT_IN.get(kind)
    if checks is None:
        return [] if kind == "pong" and iso(message.get("ts")) else [f"unknown type {kind!r}"]
    # The request id of a refused frame is echoed whatever it was.
    echo = anything if kind == "error" else text
    return _wrong(message, {"ts": iso, "requestId_": echo, **checks})
