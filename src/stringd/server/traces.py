"""Traces for OpenTelemetry: a span for each run, step, tool call and command.

Names follow the conventions for generative AI. No span holds what was said, an argument or an
output. Loaded only where `STRINGD_TRACES` is set; the standard `OTEL_…` variables say where to.
"""

import asyncio
import os
import threading
from typing import TYPE_CHECKING, Final, NamedTuple

from msgspec import UNSET
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Span, Status, StatusCode, Tracer, set_span_in_context

from stringd import __version__
from stringd.wire.runs import messages as m
from stringd.wire.runs.stream import ToolCall, ToolResult

if TYPE_CHECKING:
    from stringd.runs import DecidedBy, RunObserver
    from stringd.runtime.topics.observer import ClientName, TopicObserver
    from stringd.runtime.topics.session import Slot
    from stringd.wire.feed import PromptKind
    from stringd.wire.result import Result
    from stringd.wire.run_status import RunStatus

FLUSH_SECONDS: Final = 2.0
"""What a daemon that stops waits for a collector to take the last spans."""
_SECRETS: Final = ("OTEL_EXPORTER_OTLP_HEADERS", "OTEL_EXPORTER_OTLP_TRACES_HEADERS")


class Traces:
    """The way to the collector. Nothing the daemon does waits for it."""

    def __init__(self) -> None:
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": "stringd"}
        resource = Resource.create({**named, "service.version": __version__})
        self._provider = TracerProvider(resource=resource, shutdown_on_exit=False)
        self._provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        self._tracer = self._provider.get_tracer("stringd", __version__)
        # The exporter has read them; what the daemon starts must not.
        for name in _SECRETS:
            os.environ.pop(name, None)

    def of_runs(self, inner: "RunObserver") -> "RunTraces":
        """Hears the runs for us and for another."""
        return RunTraces(inner, self._tracer)

    def of_topics(self, inner: "TopicObserver") -> "TopicTraces":
        """Hears the topics for us and for another."""
        return TopicTraces(inner, self._tracer)

    async def close(self) -> None:
        """Send what is left, if the collector takes it soon."""
        # Not one of the loop's own threads: those are waited for when the daemon ends.
        last = threading.Thread(target=self._provider.shutdown, daemon=True)
        last.start()
        await asyncio.to_thread(last.join, FLUSH_SECONDS)


class _OpenRun(NamedTuple):
    """The spans of a run that have not ended; steps of one name end in the order they began."""

    run: Span
    steps: dict[str, list[Span]]
    tools: dict[tuple[str, str], Span]


class RunTraces:
    """A trace for each segment of a run. Everything is passed on first."""

    def __init__(self, inner: "RunObserver", tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer
        self._open: dict[str, _OpenRun] = {}

    def prepared(self, run_id: str, strategy: str) -> None:
        self._inner.prepared(run_id, strategy)

    def said(self, strategy: str, status: "RunStatus", message: m.RunBroadcast) -> None:
        self._inner.said(strategy, status, message)
        if isinstance(message, m.StrategyStarted):
            self._end(message.run_id, None)
            self._open[message.run_id] = _OpenRun(self._begin_run(message), {}, {})
        elif (held := self._open.get(message.run_id)) is not None:
            self._heard(held, message)

    def still_asked(
        self,
        strategy: str,
        prompt: m.RequestInput | m.RequestQuestion | m.RequestPermission,
        since: str,
    ) -> None:
        self._inner.still_asked(strategy, prompt, since)

    def resolved(
        self, run_id: str, kind: "PromptKind", request_id: str, answer: str, by: "DecidedBy | None"
    ) -> None:
        self._inner.resolved(run_id, kind, request_id, answer, by)

    def deleted(self, run_id: str) -> None:
        self._inner.deleted(run_id)

    def _begin_run(self, message: m.StrategyStarted) -> Span:
        span = self._tracer.start_span(f"invoke_workflow {message.strategy_name}")
        span.set_attribute("gen_ai.operation.name", "invoke_workflow")
        span.set_attribute("gen_ai.workflow.name", message.strategy_name)
        span.set_attribute("gen_ai.conversation.id", message.run_id)
        return span

    def _heard(self, held: _OpenRun, message: m.RunBroadcast) -> None:
        match message:
            case m.StepStarted(step_name=name):
                span = self._child(held.run, f"invoke_agent {name}", "invoke_agent")
                span.set_attribute("gen_ai.agent.name", name)
                span.set_attribute("gen_ai.conversation.id", message.run_id)
                held.steps.setdefault(name, []).append(span)
            case m.StepCompleted(step_name=name, result=result):
                if held.steps.get(name):
                    span = held.steps[name].pop(0)
                    span.set_attribute("gen_ai.response.finish_reasons", [result.finish_reason])
                    _count(span, result.usage.prompt_tokens, result.usage.completion_tokens)
                    span.end()
            case m.AgentOutput(agent_name=name, model=model):
                if held.steps.get(name) and model is not UNSET:
                    provider, _, plain = model.partition("/")
                    held.steps[name][0].set_attribute("gen_ai.provider.name", provider)
                    held.steps[name][0].set_attribute("gen_ai.request.model", plain or model)
            case m.AgentStreaming(agent_name=agent, event=ToolCall() as call):
                steps = held.steps.get(agent)
                parent = steps[0] if steps else held.run
                span = self._child(parent, f"execute_tool {call.tool_name}", "execute_tool")
                span.set_attribute("gen_ai.tool.name", call.tool_name)
                span.set_attribute("gen_ai.tool.type", "function")
                span.set_attribute("gen_ai.tool.call.id", call.tool_call_id)
                held.tools[agent, call.tool_call_id] = span
            case m.AgentStreaming(agent_name=agent, event=ToolResult() as answer):
                tool = held.tools.pop((agent, answer.tool_call_id), None)
                if tool is not None:
                    if answer.status == "error":
                        _fail(tool, "tool_error")
                    tool.end()
            case m.StrategyCompleted(usage=usage):
                _count(held.run, usage.prompt_tokens, usage.completion_tokens)
                self._end(message.run_id, None)
            case m.StrategyError(error=error):
                self._end(message.run_id, error.code)
            case _:
                pass

    def _child(self, parent: Span, name: str, operation: str) -> Span:
        span = self._tracer.start_span(name, context=set_span_in_context(parent))
        span.set_attribute("gen_ai.operation.name", operation)
        return span

    def _end(self, run_id: str, error: str | None) -> None:
        """End a run's span, and before it those that it left open."""
        held = self._open.pop(run_id, None)
        if held is None:
            return
        steps = [span for spans in held.steps.values() for span in spans]
        for span in (*held.tools.values(), *steps, held.run):
            if error is not None:
                _fail(span, error)
            span.end()


class TopicTraces:
    """A span for each command of a topic. Everything is passed on first."""

    def __init__(self, inner: "TopicObserver", tracer: Tracer) -> None:
        self._inner = inner
        self._tracer = tracer
        self._open: dict[int, Span] = {}

    def created(self, user_id: str, topic: str) -> None:
        self._inner.created(user_id, topic)

    def closed(self, user_id: str, topic: str) -> None:
        self._inner.closed(user_id, topic)

    def answered(self, slot: "Slot", text: str, client: "ClientName", result: "Result") -> None:
        self._inner.answered(slot, text, client, result)
        _finish(self._begin(slot), result)

    def began(self, slot: "Slot", text: str, client: "ClientName", /) -> int:
        number = self._inner.began(slot, text, client)
        self._open[number] = self._begin(slot)
        return number

    def ended(self, number: int, result: "Result") -> None:
        self._inner.ended(number, result)
        span = self._open.pop(number, None)
        if span is not None:
            _finish(span, result)

    def _begin(self, slot: "Slot") -> Span:
        span = self._tracer.start_span(f"exec {slot.topic.type}")
        span.set_attribute("stringd.topic", slot.topic.canonical)
        span.set_attribute("stringd.user", slot.user_id)
        return span


def _finish(span: Span, result: "Result") -> None:
    if not result.ok:
        _fail(span, result.code or "error")
    span.end()


def _fail(span: Span, kind: str) -> None:
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR))


def _count(span: Span, taken: int, given: int) -> None:
    span.set_attribute("gen_ai.usage.input_tokens", taken)
    span.set_attribute("gen_ai.usage.output_tokens", given)
