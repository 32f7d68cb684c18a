"""A coding agent for tests: speaks the Agent Client Protocol and does what a prompt says.

Standard library only: it runs as a process of its own.
"""

import json
import os
import sys
from itertools import count
from typing import Any

OPTIONS = [
    {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
    {"optionId": "no", "name": "Reject", "kind": "reject_once"},
]
ids = count(1)


def send(**message: Any) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def receive() -> dict[str, Any]:
    line = sys.stdin.readline()
    if not line:
        sys.exit(0)
    found: dict[str, Any] = json.loads(line)
    return found


def ask(method: str, **params: Any) -> dict[str, Any]:
    number = f"mine-{next(ids)}"
    send(id=number, method=method, params={"sessionId": "s-1", **params})
    while True:
        message = receive()
        if message.get("id") == number:
            return message
        if message.get("method") == "session/cancel":
            return {"cancelled": True}


def update(what: str, /, **fields: Any) -> None:
    params = {"sessionId": "s-1", "update": {"sessionUpdate": what, **fields}}
    send(method="session/update", params=params)


def say(text: str) -> None:
    update("agent_message_chunk", content={"type": "text", "text": text})


def permission(call: dict[str, Any]) -> str:
    answer = ask("session/request_permission", toolCall=call, options=OPTIONS)
    outcome = answer.get("result", {}).get("outcome", {})
    return str(outcome.get("optionId", outcome.get("outcome", "cancelled")))


def prompt(text: str) -> str:
    call: dict[str, Any]
    word, _, rest = text.rpartition("\n")[2].partition(" ")
    match word:
        case "think":
            update("agent_thought_chunk", content={"type": "text", "text": "hm"})
            entry = {"content": "look", "priority": "high", "status": "completed"}
            update("plan", entries=[entry])
            say("thought")
        case "run":
            raw = {"command": rest}
            call = {"toolCallId": "t-1", "title": f"`{rest}`", "kind": "execute", "rawInput": raw}
            update("tool_call", status="pending", **call)
            chosen = permission(call)
            done = {"type": "content", "content": {"type": "text", "text": f"ran: {chosen}"}}
            update("tool_call_update", toolCallId="t-1", status="completed", content=[done])
            say(chosen)
        case "write":
            path, _, content = rest.partition(" ")
            place = [{"path": path}]
            call = {"toolCallId": "t-2", "title": "Write", "kind": "edit", "locations": place}
            if permission(call) == "no":
                say("not written")
                return "end_turn"
            answer = ask("fs/write_text_file", path=path, content=content)
            say(answer.get("error", {}).get("message", "written"))
        case "read":
            answer = ask("fs/read_text_file", path=rest, line=2, limit=1)
            say(answer.get("result", {}).get("content") or answer["error"]["message"])
        case "flood":
            call = {"toolCallId": "t-3", "title": "many", "kind": "execute"}
            asked = {"sessionId": "s-1", "toolCall": call, "options": OPTIONS}
            for _ in range(int(rest)):
                send(id=next(ids), method="session/request_permission", params=asked)
            say(receive()["error"]["message"])
        case "crash":
            sys.stderr.write("out of luck\n")
            sys.stderr.flush()
            os._exit(3)
        case "hang":
            say("working")
            while receive().get("method") != "session/cancel":
                pass
            with open(rest, "w") as file:
                file.write("cancelled")
            return "cancelled"
        case _:
            say(f"heard: {text}")
    return "end_turn"


def main() -> None:
    loads = "--loads" in sys.argv
    print("Welcome to the agent!", flush=True)
    while True:
        message = receive()
        method, params = message.get("method"), message.get("params", {})
        result: Any = {}
        if method == "initialize":
            result = {"protocolVersion": 1, "agentCapabilities": {"loadSession": loads}}
        elif method == "session/new" and "--login" in sys.argv:
            error = {"code": -32000, "message": "Authentication required"}
            send(id=message["id"], error=error)
            continue
        elif method == "session/new":
            result = {"sessionId": "s-1"}
        elif method == "session/load":
            say("an old word")
        elif method == "session/prompt":
            usage = {"totalTokens": 9, "inputTokens": 5, "outputTokens": 4}
            result = {"stopReason": prompt(params["prompt"][0]["text"]), "usage": usage}
        if "id" in message:
            send(id=message["id"], result=result)


if __name__ == "__main__":
    main()
