"""Traces reach a real collector: what it gets over HTTP, read with the official definitions."""

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.runs.support import scripted, sequential, strategy, watching
from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import User

SECRET = "canary-of-what-was-said"
CALL = {"tools": [{"name": "todo_get", "args": {}}]}


class Collector:
    """An OTLP receiver."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.paths: set[str] = set()
        self.headers: set[str | None] = set()
        self.services: set[str] = set()
        self.raw = b""
        self.came = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.take(self.path, self.headers.get("X-Key"), body)
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def take(self, path: str, key: str | None, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        with self.came:
            self.raw += body
            self.paths.add(path)
            self.headers.add(key)
            for resource in request.resource_spans:
                named = {each.key: each.value.string_value for each in resource.resource.attributes}
                self.services.add(named["service.name"])
                for scope in resource.scope_spans:
                    self.spans += scope.spans
            self.came.notify_all()

    def until(self, *names: str) -> dict[str, Any]:
        """The spans by name, once all of these came."""
        with self.came:
            found = self.came.wait_for(
                lambda: set(names) <= {each.name for each in self.spans}, WAIT_SECONDS
            )
            assert found, [each.name for each in self.spans]
            return {each.name: each for each in self.spans}


@pytest.fixture
def collector() -> Iterator[Collector]:
    running = Collector()
    thread = threading.Thread(target=running.server.serve_forever)
    thread.start()
    yield running
    running.server.shutdown()
    running.server.server_close()
    thread.join(WAIT_SECONDS)


def attributes(span: Any) -> dict[str, Any]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


@pytest.mark.anyio
async def test_runs_steps_tools_and_commands_are_spans(
    tmp_path: Path, collector: Collector
) -> None:
    path = tmp_path / "traced.yaml"
    agent = {**scripted(CALL, SECRET), "tools": ["todo_get"]}
    path.write_text(yaml.safe_dump(strategy(sequential("ada"), ada=agent)), "utf-8")
    settings = {
        "STRINGD_TRACES": "otlp",
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        "OTEL_EXPORTER_OTLP_HEADERS": "x-key=secret",
        "OTEL_BSP_SCHEDULE_DELAY": "50",
    }
    with Daemon(tmp_path, **settings) as daemon:
        async with watching(daemon.port) as watcher:
            messages = await watcher.run(path, SECRET)
        user = User(daemon.port, "default", daemon.home)
        assert user.exec(f"/write a.md\n{SECRET}")[0]["ok"]
        assert not user.exec("/open gone.md")[0]["ok"]
        assert "secret" not in user.exec("env", topic="bash:x")[1]
        names = "invoke_workflow Test", "invoke_agent ada", "execute_tool todo_get"
        spans = collector.until(*names, "exec file", "exec bash")
    run, step, tool = (spans[name] for name in names)
    assert (step.parent_span_id, tool.parent_span_id) == (run.span_id, step.span_id)
    assert run.parent_span_id == b""
    assert run.trace_id == step.trace_id == tool.trace_id
    assert attributes(run)["gen_ai.conversation.id"] == "r1"
    usage = messages[-1]["usage"]
    assert attributes(run)["gen_ai.usage.output_tokens"] == usage["completionTokens"]
    assert attributes(step)["gen_ai.request.model"] == "script"
    assert attributes(tool)["gen_ai.tool.name"] == "todo_get"
    failed = [each for each in collector.spans if each.status.code == 2]
    assert [attributes(each)["error.type"] for each in failed] == ["NOT_FOUND"]
    assert SECRET.encode() not in collector.raw
    assert (collector.paths, collector.headers) == ({"/v1/traces"}, {"secret"})
    assert collector.services == {"stringd"}


@pytest.mark.anyio
async def test_a_run_that_fails_ends_its_spans_with_the_reason(
    tmp_path: Path, collector: Collector
) -> None:
    path = tmp_path / "traced.yaml"
    agent = {**scripted(CALL, CALL, "x"), "tools": ["todo_get"]}
    path.write_text(yaml.safe_dump(strategy(sequential("ada"), ada=agent)), "utf-8")
    with Daemon(
        tmp_path,
        STRINGD_TRACES="otlp",
        STRINGD_RUN_MAX_TOOL_CALLS="1",
        OTEL_EXPORTER_OTLP_ENDPOINT=collector.url,
    ) as daemon:
        async with watching(daemon.port) as watcher:
            await watcher.run(path)
    # It was stopped before the spans were due: what is left is sent at the end.
    spans = collector.until("invoke_workflow Test", "invoke_agent ada")
    assert attributes(spans["invoke_workflow Test"])["error.type"] == "BUDGET_EXCEEDED"
    assert attributes(spans["invoke_agent ada"])["error.type"] == "BUDGET_EXCEEDED"


def test_nothing_is_sent_unless_it_was_asked_for(tmp_path: Path, collector: Collector) -> None:
    with Daemon(tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT=collector.url) as daemon:
        assert User(daemon.port, "default", daemon.home).exec("/ls")[0]["ok"]
        assert daemon.process is not None
        # What the exporter encodes with is compiled, so the kernel knows whether it is loaded.
        assert "_upb" not in Path(f"/proc/{daemon.process.pid}/maps").read_text()
    assert collector.raw == b""


def test_a_collector_that_is_not_there_stops_nothing(tmp_path: Path) -> None:
    with Daemon(
        tmp_path, STRINGD_TRACES="otlp", OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9"
    ) as daemon:
        assert User(daemon.port, "default", daemon.home).exec("/ls")[0]["ok"]
        assert daemon.stop() == 0
    assert "Traceback" not in "".join(daemon.output)
