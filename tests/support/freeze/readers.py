"""Everything of ours that reads text of others, each as a function of one text.

What a reader refuses is fine; only how long it takes is of interest. A reader that takes a piece
at a time is fed pieces of 4 KB, as they come from a socket or a terminal.
"""

import asyncio
import os
import re
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

from stringd.actions.binding import bind, read_arguments
from stringd.actions.command_line import unsafe_holes
from stringd.actions.data import parsed
from stringd.actions.errors import ActionError
from stringd.actions.holes import check
from stringd.actions.hosts import declared_hosts, origin_of
from stringd.actions.http_text import RequestComposer
from stringd.actions.place import ActionContext, Names
from stringd.actions.program import compile_template, mentions
from stringd.actions.responses import ActionAnswer, TemplateRun
from stringd.actions.secrets import NOTHING_HIDDEN, Mask, is_secret
from stringd.actions.shell_text import compose_command
from stringd.actions.templates import Inputs
from stringd.documents import html_to_markdown, parse, parse_menu, render
from stringd.documents.action_blocks import Action, parse_action, parse_field
from stringd.documents.addresses import joined
from stringd.documents.authoring import author_diagnostics
from stringd.documents.diffs import diff
from stringd.documents.disarm import disarmed
from stringd.documents.edits import parse_target, replace_block, replace_text, split_replacement
from stringd.documents.errors import DocumentError
from stringd.documents.flags import parse_flags
from stringd.documents.html import html_to_text
from stringd.documents.render import Included, render_text
from stringd.documents.scaffold import nav_scaffold
from stringd.formats.front_matter import header_bounds, read_header
from stringd.formats.jsonc import parse_json
from stringd.formats.places import SourceSyntaxError
from stringd.formats.shell.wrappers import read_through
from stringd.formats.yaml12 import parse_loosely, parse_yaml
from stringd.gate.audit import records
from stringd.gate.display import clipped, labelled, pipeline_text, wrap_exact
from stringd.net.charsets import decoded
from stringd.net.fetch import normalised
from stringd.runs.agents.templates import Templates
from stringd.runs.errors import ExecutionError
from stringd.runs.guard import commands, globs
from stringd.runs.guard.commands import DANGEROUS, approval
from stringd.runs.guard.globs import GlobError, matches
from stringd.runs.strategy.schema import STRATEGY
from stringd.runs.tools.files.edit import Edit, apply
from stringd.runs.tools.files.text import diff as unified
from stringd.runs.tools.output import ToolFailure
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.mcp_app import Mount, ResourceInfo, ToolInfo, document_of, with_ids
from stringd.runtime.packages.sources import github_path
from stringd.runtime.shell.output import Output
from stringd.runtime.topics.line import parse_line
from stringd.runtime.topics.location import read_manifest
from stringd.runtime.variables.assignments import parse_assignments
from stringd.wire import chanflow
from stringd.wire.body import parse_exec_body
from stringd.wire.jsonlines import JsonError
from stringd.wire.jsonlines import parse as parse_json_line
from stringd.wire.runs.codec import decode_request
from stringd.wire.sse import SseReader, read_events

Reader = Callable[[str], object]
READERS: dict[str, Reader] = {}
PIECE = 4096


def reader(name: str) -> Callable[[Reader], Reader]:
    def add(function: Reader) -> Reader:
        READERS[name] = function
        return function

    return add


def encoded(text: str) -> bytes:
    return text.encode("utf-8", "surrogatepass")


def sendable(text: str) -> str:
    """The text as a wire can carry it: lone surrogates replaced."""
    return text.encode("utf-8", "replace").decode()


def pieces(data: bytes) -> Iterator[bytes]:
    return (data[at : at + PIECE] for at in range(0, len(data), PIECE))


def place() -> ActionContext:
    names = Names(session={"a": "b"}, context={"HOME": "/h", "ARGS": ""}, stored={"NAME": "v"})
    return ActionContext("/act.x", "http://example.com/", Path("/"), names=names)


def include_itself(text: str) -> Callable[[str, str], Included]:
    return lambda path, base: Included(f"{base}/{path}"[-40:], text)


# Documents


@reader("document")
def _(text: str) -> object:
    document = parse(text, "file:///a.md")
    view = render(document, include=include_itself("<!-- #a -->\nx\n<!-- /a -->\n"))
    return view, document.warnings(), author_diagnostics(document), document.block_ids


@reader("blocks and headings")
def _(text: str) -> object:
    document = parse(text)
    return [document.find_block(ident) for ident in ("nowhere", "a", "heading-7")]


@reader("menu")
def _(text: str) -> object:
    return parse_menu("a", text, "file:///a.md")


@reader("menu scaffold")
def _(text: str) -> object:
    return nav_scaffold(parse(text))


@reader("includes")
def _(text: str) -> object:
    document = parse("[!include:a](b)\n\n[!include:nowhere](b)\n", "file:///a.md")
    return render(document, include=include_itself(text))


@reader("front matter")
def _(text: str) -> object:
    bounds = header_bounds(text)
    return read_header(text[bounds.start : bounds.end], str), read_header(text, str)


@reader("data with links")
def _(text: str) -> object:
    return render_text(text)


@reader("disarming")
def _(text: str) -> object:
    return disarmed(text)


@reader("HTML to Markdown")
def _(text: str) -> object:
    return html_to_markdown(text)


@reader("HTML to text")
def _(text: str) -> object:
    return html_to_text(text)


@reader("action block")
def _(text: str) -> object:
    return (
        parse_action("x", text),
        parse_action("x", f"POST /x {text}"),
        parse_field(f"  a: {text}"),
    )


@reader("flags")
def _(text: str) -> object:
    return parse_flags(text)


@reader("edit target")
def _(text: str) -> object:
    return parse_target(text)


@reader("block edit")
def _(text: str) -> object:
    source = "# A\n\n<!-- #a -->\nx\n<!-- /a -->\n"
    with suppress(DocumentError):
        return replace_block(source, "a", text)
    return None


@reader("replacement")
def _(text: str) -> object:
    with suppress(DocumentError):
        return replace_text(text, *split_replacement(f"{text[: len(text) // 2]}\n---\nb"))
    return None


@reader("diff of edits")
def _(text: str) -> object:
    half = len(text) // 2
    return diff(text, text[half:] + text[:half]).text, diff("", text).text


@reader("diff of runs")
def _(text: str) -> object:
    half = len(text) // 2
    return unified(text, text[half:] + text[:half], "a")


@reader("web addresses")
def _(text: str) -> object:
    with suppress(Exception):
        normalised(f"http://example.com/{text}")
    return joined("http://example.com/a/b", text), origin_of(text), github_path(text)


# Formats


@reader("YAML")
def _(text: str) -> object:
    with suppress(SourceSyntaxError):
        return STRATEGY.check(parse_yaml(text)[0])
    return None


@reader("loose YAML")
def _(text: str) -> object:
    with suppress(SourceSyntaxError):
        return parse_loosely(text, str)
    return None


@reader("JSON with comments")
def _(text: str) -> object:
    with suppress(SourceSyntaxError):
        return STRATEGY.check(parse_json(text)[0])
    return None


@reader("JSON line of the gate")
def _(text: str) -> object:
    with suppress(JsonError):
        return parse_json_line(encoded(text))
    return None


@reader("JSON of requests")
def _(text: str) -> object:
    data = encoded(text)
    with suppress(ValueError):
        parse_exec_body(data)
    return decode_request(data), read_manifest(data, "http://a/"), parsed(sendable(text))


# Shell text


@reader("command of a run")
def _(text: str) -> object:
    return DANGEROUS.reasons(text), approval((r"curl\b",)).reasons(text)


@reader("shell reading")
def _(text: str) -> object:
    return read_through(text)


@reader("command of an action")
def _(text: str) -> object:
    return unsafe_holes(Action("x", "CLI", f"{text} {{a}}"), {"NAME": "v"})


@reader("command composition")
def _(text: str) -> object:
    with suppress(ActionError):
        return compose_command(text, Inputs({"a": "x y", "b": "7"}, place()), ("x", "y"))
    return None


# Actions and templates


@reader("template compilation")
def _(text: str) -> object:
    return compile_template(text), mentions(text, "stdout", "stderr")


@reader("template over an answer")
def _(text: str) -> object:
    answer = ActionAnswer({"status": 200, "body": parsed('{"a":{"b":"c"},"b":[1,2],"items":[3]}')})
    return asyncio.run(TemplateRun(answer, {"a": "b"}, place(), NOTHING_HIDDEN).run(text))


@reader("answer in a template")
def _(text: str) -> object:
    text = sendable(text)
    answer = ActionAnswer({"status": 200, "body": parsed(text)}, encoded(text))
    template = "{Response.body}\nfor: a in body\n{@s} = ({a}, x)\n{a.b}\nend:\nsave: body\n"
    run = TemplateRun(answer, {}, place(), Mask(["secret", text[:20]]))
    return asyncio.run(run.run(template))


@reader("HTTP action")
def _(text: str) -> object:
    action = Action("x", "POST", f"http://example.com/{text}", (("A", text),), text)
    composer = RequestComposer(action, Inputs({"a": "x"}, place()))
    with suppress(ActionError, FileNotFoundError):
        url, shown = composer.address()
        return composer.request(url, shown, composer.headers())
    return None


@reader("arguments of an action")
def _(text: str) -> object:
    action = Action("x", "GET", "http://a/{a}")
    with suppress(ActionError):
        return bind(action, read_arguments(action, text), place())
    return None


@reader("secrets and hosts")
def _(text: str) -> object:
    text = sendable(text)
    return (
        is_secret(text, text),
        declared_hosts([text], {}),
        Mask(["a" * 40 + "b", text[:40]])(text),
    )


@reader("prompt template")
def _(text: str) -> object:
    with suppress(ExecutionError):
        return Templates().render(text, {"a": "b", "b": [1, 2]}, Path("/"))
    return None


# Wires


@reader("ChanFlow")
def _(text: str) -> object:
    return chanflow.parse(text), chanflow.unescape(chanflow.escape(text))


@reader("event stream")
def _(text: str) -> object:
    return read_events(encoded(text))


@reader("event stream in pieces")
def _(text: str) -> object:
    events = SseReader()
    return [events.feed(piece) for piece in pieces(encoded(text))]


@reader("charset detection")
def _(text: str) -> object:
    data = encoded(text)
    return [
        decoded(data, name, html=True) for name in (None, "latin-1", "utf-16", "gb2312", "utf-7")
    ]


# Terminals


@reader("terminal output")
def _(text: str) -> object:
    output = Output()
    output.feed(encoded(text))
    view = output.take(over=True)
    output.transcript.close()
    return view


@reader("terminal output in pieces")
def _(text: str) -> object:
    output = Output()
    for piece in pieces(encoded(text)):
        output.feed(piece)
        output.settle()
    view = output.take(over=True)
    output.transcript.close()
    return view


@reader("gate display")
def _(text: str) -> object:
    shown = pipeline_text([text.split(" "), [text]])
    return wrap_exact(shown, 80), labelled("a ", clipped(text, 4096), 80)


@reader("audit lines")
def _(text: str) -> object:
    descriptor = os.memfd_create("lines")
    try:
        os.write(descriptor, encoded(text))
        return list(records(Path(f"/proc/self/fd/{descriptor}")))
    finally:
        os.close(descriptor)


# Commands and packages


@reader("command line")
def _(text: str) -> object:
    with suppress(CommandError):
        return parse_line(f"/open {text}")
    return None


@reader("assignments")
def _(text: str) -> object:
    with suppress(CommandError):
        return parse_assignments(text, text)
    return None


@reader("MCP descriptions")
def _(text: str) -> object:
    schema = {
        "type": "object",
        "properties": {text[:4096]: {"type": "string", "description": text}},
    }
    tools = with_ids([ToolInfo(text, text, schema), *(ToolInfo(t, t) for t in text.split("\n"))])
    resources = (ResourceInfo(text, text, text),)
    mount = Mount(title=text, instructions=text, tools=tools, resources=resources)
    return document_of("a", mount)


# Runs


@reader("glob patterns")
def _(text: str) -> object:
    with suppress(GlobError):
        return matches(text, "a/b/c.txt"), matches(text, "a" * 2000)
    return None


@reader("paths against globs")
def _(text: str) -> object:
    return [matches(glob, text) for glob in ("**/*.py", "a*a*a*a*b", "**/a/**/b/**/c", "{a,b}*")]


@reader("edits of runs")
def _(text: str) -> object:
    found = []
    for old in (text[len(text) // 3 : len(text) // 2], "a\nb\nc", " ".join(text[:2000].split())):
        with suppress(ToolFailure):
            found.append(apply(text, [Edit(old or "a", "x")], "a"))
    return found


IN_WORKERS = frozenset(
    {
        "HTML to Markdown",
        "HTML to text",
        "command of a run",
        "shell reading",
        "command of an action",
        "prompt template",
    }
)
"""Their parsers are not ours; long texts are read in processes with a limit of time."""


def forget() -> None:
    """Empty the caches, so that a second reading is one."""
    compile_template.cache_clear()
    check._judged.cache_clear()
    check._long_commands.clear()
    commands._short.cache_clear()
    commands._long_lines.clear()
    globs._compiled.cache_clear()
    re.purge()
