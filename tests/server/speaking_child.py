"""Run by a daemon's child: tries what only the owner decides, and prints what it was answered.

`speaking_child.py <wire> <place> <run> [detached]`; the wires are ws, unix, mcp and bridge.
"""

import http.client
import json
import os
import subprocess
import sys

from websockets.sync.client import ClientConnection, connect, unix_connect

WAIT_SECONDS = 60


def decisions(run_id: str) -> list[dict[str, object]]:
    """Every request that is a decision; the ids need not exist to be refused."""
    return [
        {
            "type": "permission_decision",
            "runId": run_id,
            "permissionRequestId": sys.argv[4],
            "decision": "allow",
        },
        {"type": "question_response", "runId": run_id, "questionRequestId": "q", "response": "y"},
        {"type": "user_input", "runId": run_id, "agentName": "a", "text": "y"},
        {"type": "update_policy", "runId": run_id, "mode": "write", "default": "allow"},
        {
            "type": "set_credential",
            "providerId": "openai",
            "credentialType": "api",
            "apiKey": "k",
        },
    ]


def over_websocket(connection: ClientConnection, run_id: str) -> list[str]:
    answers = []
    other: dict[str, object] = {"type": "list_runs"}
    for number, request in enumerate([*decisions(run_id), other]):
        connection.send(json.dumps(request | {"requestId": str(number)}))
        answer: dict[str, object] = {}
        while answer.get("requestId") != str(number):
            answer = json.loads(connection.recv(WAIT_SECONDS))
        answers.append(str(answer.get("code", answer["type"])))
    return answers


def over_mcp(port: int, run_id: str) -> list[str]:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_SECONDS)
    headers = {
        "Content-Type": "application/json",
        "Accept": "application/json, text/event-stream",
    }
    connection.request("POST", "/mcp", json.dumps(answer_call(run_id)), headers)
    return [connection.getresponse().read().decode()]


def over_bridge(port: int, run_id: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-m", "stringd", "mcp", "--port", str(port)],
        input=json.dumps(answer_call(run_id)) + "\n",
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    return [done.stdout]


def answer_call(run_id: str) -> dict[str, object]:
    params = {"name": "answer", "arguments": {"run_id": run_id, "text": "mine"}}
    return {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": params}


def detach() -> None:
    """Leave the session, the parent and the environment behind; the first process waits."""
    reading, writing = os.pipe()
    if os.fork():
        os.close(writing)
        with os.fdopen(reading, "rb") as pipe:
            pipe.read()
        os._exit(0)
    os.setsid()
    if os.fork():
        os._exit(0)
    os.set_inheritable(writing, True)
    kept = {name: os.environ[name] for name in ("HOME", "PYTHONPATH") if name in os.environ}
    os.execve(sys.executable, [sys.executable, "-P", *sys.argv[:5]], kept)


def main() -> None:
    wire, place, run_id = sys.argv[1:4]
    if sys.argv[5:] == ["detached"]:
        detach()
    match wire:
        case "ws":
            with connect(f"ws://127.0.0.1:{place}/ws", proxy=None) as connection:
                answers = over_websocket(connection, run_id)
        case "unix":
            with unix_connect(place, "ws://localhost/ws") as connection:
                answers = over_websocket(connection, run_id)
        case "mcp":
            answers = over_mcp(int(place), run_id)
        case _:
            answers = over_bridge(int(place), run_id)
    print(json.dumps(answers), flush=True)


main()
