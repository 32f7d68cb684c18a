"""Tokens that `string` and ordinary MCP tools cost for the same ten tasks on the same five apps.

The vocabulary is o200k_base as the package rs-bpe ships it: `pip install rs-bpe`, no download.
The apps run on a real daemon against a small HTTP service; docs/tokens.md describes the method.
"""

import json
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from subprocess import SubprocessError
from typing import Any, ClassVar, NamedTuple

from bench.arms import Turn
from bench.arms_table import table
from bench.ask_model import FrozenTask, Way, measure
from bench.servers import packages, record
from bench.table import Row
from stringd.client import String
from stringd.mcp.catalog import TOOLS, ListedTool
from stringd.runs.models.port import ToolOffer
from tests.mcp.support import answer_of
from tests.support.daemon import Daemon
from tests.support.http import request

TITLE = "Tokens: one tool for every command, against one tool for each action"

APPS = Path(__file__).parent / "apps"
NAMES = ("weather", "tasks", "issues", "calendar", "mail")
Count = Callable[[str], int]
Call = Callable[[list[str]], tuple[Turn, list[str]]]


class Task(NamedTuple):
    """A task done three ways; `discovery` is what `string` pays once for each app."""

    app: str
    string: list[Turn]
    formatted: list[Turn]
    raw: list[Turn]


def rows() -> Iterator[Row]:
    try:
        vocabulary = import_module("rs_bpe.bpe").openai.o200k_base()
    except ImportError:
        yield Row("tokens", "not measured: pip install rs-bpe", "", None, "")
        return
    count: Count = vocabulary.count
    with service() as port, tempfile.TemporaryDirectory() as folder:
        tasks, discoveries = perform(Path(folder), port)
    yield from _standing(count)
    yield from _tasks(count, tasks, discoveries)
    yield from _conversation(count, tasks, discoveries)


def more() -> str:
    """The five arms, and what a model does if `STRINGD_BENCH_MODEL` names one."""
    model = os.environ.get("STRINGD_BENCH_MODEL")
    return "\n".join([_five_arms(), *([asked(model)] if model else [])])


def asked(model: str, **options: Any) -> str:
    """The ten tasks by a model, `provider/model`, with `string` and with typed tools."""
    tasks = [
        FrozenTask(task["task"], _answered(task["steps"][-1])) for task in _json_file("tasks.json")
    ]
    with (
        service() as port,
        tempfile.TemporaryDirectory() as folder,
        installed_apps(Path(folder), port) as daemon,
    ):
        return measure(model, [_string_way(daemon.port), _typed_way()], tasks, **options)


def _string_way(port: int) -> Way:
    def execute(name: str, arguments: dict[str, Any]) -> str:
        result = _called(port, {"name": name, "arguments": arguments})
        return "\n".join(part["text"] for part in result["content"])

    tool = TOOLS[0]
    offers = [ToolOffer(tool.name, tool.description, tool.schema)]
    return Way("`string`", offers, execute, _Service.requests)


def _typed_way() -> Way:
    """The same service behind typed tools; each passes on the service's JSON."""
    answers, requests = _json_file("answers.json"), list[str]()

    def execute(name: str, arguments: dict[str, Any]) -> str:
        wanted = _request_of(name, arguments)
        requests.append(wanted)
        return _compact(answers.get(wanted, {"error": "not found"}))

    offers = [
        ToolOffer(tool["name"], tool["description"], tool["inputSchema"])
        for tool in _json_file("tools.json")
    ]
    return Way("one tool for each action", offers, execute, requests)


def _request_of(tool: str, arguments: dict[str, Any]) -> str:
    """The request of the service that a typed call makes."""
    usual = _answered({"tool": tool})
    named = {"tasks_done": "task", "mail_read": "mail"}
    named |= dict.fromkeys(("issues_read", "issues_comment", "issues_close"), "issue")
    if tool not in named:
        return usual
    method, _, path = usual.partition(" ")
    parts = path.split("/")
    parts[2] = str(arguments.get(named[tool], ""))
    return f"{method} {'/'.join(parts)}"


def _five_arms() -> str:
    """The table for each vocabulary, if npm and pip give the servers."""
    try:
        shipped = import_module("rs_bpe.bpe").openai
        with packages() as folder:
            recorded = record(folder, _json_file("real_tasks.json"))
    except (ImportError, OSError, SubprocessError) as error:
        return f"Five arms not measured: {type(error).__name__}: {error}"
    if len(recorded.tasks) < len(_json_file("real_tasks.json")):
        return f"Five arms not measured, servers are missing: {recorded.missing}"
    counts: dict[str, Count] = {
        "o200k_base (rs-bpe)": shipped.o200k_base().count,
        "cl100k_base (rs-bpe)": shipped.cl100k_base().count,
    }
    if recorded.vocabulary is not None:
        counts["claude.json (@anthropic-ai/tokenizer)"] = recorded.vocabulary
    ours = "".join(map(_compact, _listed(TOOLS[:1])))
    listed = [f"- {name}: {version}" for name, version in recorded.versions.items()]
    listed += [f"- {name}: not mounted: {why}" for name, why in recorded.missing.items()]
    tables = [table(count, name, recorded, ours) for name, count in counts.items()]
    return "\n".join(["## Five ways, public servers", "", *listed, "", *tables])


def _standing(count: Count) -> Iterator[Row]:
    tools = _json_file("tools.json")
    peer = sum(count(_compact(tool)) for tool in tools)
    one, all_seven = standing(count, TOOLS[:1]), standing(count, TOOLS)
    what = f"standing: {len(NAMES)} apps, {len(tools)} actions"
    yield _row(f"{what}, `string` alone", one, peer)
    yield _row(f"{what}, all seven tools", all_seven, peer)
    yield Row("standing: each further app", "0", f"{peer / len(NAMES):.0f}", 0.0, "0")


def _tasks(count: Count, tasks: list[Task], discoveries: dict[str, list[Turn]]) -> Iterator[Row]:
    warm = sum(_cost(count, task.string) for task in tasks)
    found = sum(_cost(count, turns) for turns in discoveries.values())
    cold = sum(_cost(count, [*discoveries[task.app], *task.string]) for task in tasks)
    formatted = sum(_cost(count, task.formatted) for task in tasks)
    raw = sum(_cost(count, task.raw) for task in tasks)
    yield _row("ten tasks, apps known, peer answers the same text", warm, formatted)
    yield _row("ten tasks, apps known, peer answers JSON", warm, raw)
    yield _row("ten tasks, each app looked at once, same text", warm + found, formatted)
    yield _row("ten tasks, every task alone in a new conversation, same text", cold, formatted)


def _conversation(
    count: Count, tasks: list[Task], discoveries: dict[str, list[Turn]]
) -> Iterator[Row]:
    one = standing(count, TOOLS[:1])
    peer = sum(count(_compact(tool)) for tool in _json_file("tools.json"))
    ours: list[Turn] = []
    theirs: list[Turn] = []
    seen: set[str] = set()
    for task in tasks:
        ours += ([] if task.app in seen else discoveries[task.app]) + task.string
        theirs += task.formatted
        seen.add(task.app)
    whole = (one + _cost(count, ours), peer + _cost(count, theirs))
    yield _row("one conversation, 5 apps installed and used: context at its end", *whole)
    for installed in (20, 50):
        more = peer // len(NAMES) * (installed - len(NAMES))
        what = f"the same with {installed} apps installed, 5 of them used (computed)"
        yield _row(what, whole[0], whole[1] + more)
    yield _row(
        "one conversation: input read over all turns, nothing cached",
        _read_over_turns(count, one, ours),
        _read_over_turns(count, peer, theirs),
    )
    alone = sum(one + _cost(count, [*discoveries[task.app], *task.string]) for task in tasks)
    yield _row(
        "ten conversations of one task each: context at their ends",
        alone,
        sum(peer + _cost(count, task.formatted) for task in tasks),
    )


def perform(folder: Path, port: int) -> tuple[list[Task], dict[str, list[Turn]]]:
    """Do every task on a real daemon; what each turn looked like."""
    with installed_apps(folder, port) as daemon:
        call = _caller(daemon.port)
        found = {name: _discover(call, name) for name in NAMES}
        return [_perform(call, task) for task in _json_file("tasks.json")], found


@contextmanager
def installed_apps(folder: Path, port: int) -> Iterator[Daemon]:
    """A daemon with the five apps, which ask the service on this port."""
    with Daemon(folder / "daemon") as daemon:
        cwd = _copies(folder, port)
        with String("bench", home=folder / "home", port=daemon.port, cwd=cwd) as string:
            for name in NAMES:
                string.exec("file:main", f"/install ./{name} --app").unwrap()
                string.exec(f"app:{name}", f"/open app:{name}").unwrap()
                string.exec(f"app:{name}", f'/set $PORT = "{port}"').unwrap()
            yield daemon


def _copies(folder: Path, port: int) -> Path:
    """The apps, each with the address of the service among the hosts it declares."""
    for name in NAMES:
        (folder / name).mkdir()
        for page in (APPS / name).iterdir():
            text = page.read_text("utf-8")
            text = text.replace("type: app\n", f"type: app\nhosts: [127.0.0.1:{port}]\n")
            (folder / name / page.name).write_text(text, "utf-8")
    return folder


def _discover(call: Call, app: str) -> list[Turn]:
    """What a model that has never seen the app asks: its page, with what its actions take."""
    return [call([f"app:{app}"])[0]]


def _perform(call: Call, task: dict[str, Any]) -> Task:
    done = Task(task["app"], [], [], [])
    waiting: list[dict[str, Any]] = []
    for step in task["steps"]:
        waiting.append(step)
        if step.get("with_next"):
            # What follows does not depend on the answer, so one call asks for both.
            continue
        cmds = [each["act"].replace("/act.", f"{task['app']}.", 1) for each in waiting]
        turn, answers = call(cmds)
        done.string.append(turn)
        for each, text in zip(waiting, answers, strict=True):
            typed = _compact({"name": each["tool"], "arguments": each["arguments"]})
            done.formatted.append(Turn(typed, text))
            done.raw.append(Turn(typed, _compact(_json_file("answers.json")[_answered(each)])))
        waiting = []
    return done


def _caller(port: int) -> Call:
    """Calls the tool `string` over MCP, as a coding agent's client does."""

    def call(cmds: list[str]) -> tuple[Turn, list[str]]:
        asked = {"name": "string", "arguments": {"cmd": cmds if len(cmds) > 1 else cmds[0]}}
        result = _called(port, asked)
        assert not result["isError"], result
        answers = [part["text"] for part in result["content"]]
        return Turn(_compact(asked), "\n".join(answers)), answers

    return call


def _called(port: int, asked: dict[str, Any]) -> dict[str, Any]:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
    headers = {"Accept": "application/json, text/event-stream", "X-User-Id": "bench"}
    answer = request(port, "POST", "/mcp", message, headers)
    result: dict[str, Any] = answer_of(answer)["result"]
    return result


def _answered(step: dict[str, Any]) -> str:
    """Which answer of the service a tool would have passed on."""
    fixed = {
        "weather_now": "GET /weather/now",
        "weather_forecast": "GET /weather/forecast",
        "tasks_list": "GET /tasks",
        "tasks_add": "POST /tasks",
        "tasks_done": "POST /tasks/t-102/done",
        "issues_search": "GET /issues",
        "issues_read": "GET /issues/412",
        "issues_comment": "POST /issues/412/comments",
        "issues_close": "POST /issues/398/close",
        "calendar_day": "GET /calendar",
        "calendar_add": "POST /calendar",
        "mail_inbox": "GET /mail",
        "mail_read": "GET /mail/m-77",
        "mail_send": "POST /mail",
    }
    return fixed[step["tool"]]


class _Service(BaseHTTPRequestHandler):
    """The service behind all five apps: fixed answers."""

    answers: ClassVar[dict[str, Any]] = {}
    requests: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        wanted = f"{self.command} {self.path.partition('?')[0]}"
        self.requests.append(wanted)
        found = self.answers.get(wanted)
        body = json.dumps({"error": "not found"} if found is None else found).encode()
        self.send_response(404 if found is None else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def log_message(self, *_args: object) -> None:
        """Say nothing."""


@contextmanager
def service() -> Iterator[int]:
    """The service on a free port."""
    _Service.answers = _json_file("answers.json")
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Service)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.server_port
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def standing(count: Count, tools: tuple[ListedTool, ...]) -> int:
    """What the definitions of tools cost in every conversation."""
    return sum(count(_compact(tool)) for tool in _listed(tools))


def _listed(tools: tuple[ListedTool, ...]) -> list[dict[str, Any]]:
    return [
        {"name": tool.name, "description": tool.description, "inputSchema": tool.schema}
        for tool in tools
    ]


def _cost(count: Count, turns: list[Turn]) -> int:
    return sum(count(turn.call) + count(turn.result) for turn in turns)


def _read_over_turns(count: Count, standing: int, turns: list[Turn]) -> int:
    """Every turn reads the tools and all that was said before it."""
    total, history = 0, 0
    for turn in turns:
        total += standing + history
        history += count(turn.call) + count(turn.result)
    return total + standing + history


def _row(what: str, ours: int, peer: int) -> Row:
    return Row(what, str(ours), str(peer), ours / peer, "")


def _json_file(name: str) -> Any:
    return json.loads((APPS / name).read_text(encoding="utf-8"))


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
