"""One call of an action: bind its arguments, compose, run, and read the answer."""

import os
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol

from stringd.actions.binding import Bound, CallArguments, bind, needs_arguments
from stringd.actions.cli import CommandOutput, RunningCommand, command_environment
from stringd.actions.command_line import command_for, read_ahead
from stringd.actions.conversion import PageLimitError, markdown_of
from stringd.actions.data import parsed
from stringd.actions.errors import ActionError, payload_error
from stringd.actions.http_text import HttpCall, RequestComposer
from stringd.actions.jobs import AppJobs
from stringd.actions.made_files import entries, made_note
from stringd.actions.network import ActionNetwork, NotSentError
from stringd.actions.place import ActionContext, set_hint
from stringd.actions.program import mentions
from stringd.actions.provenance import InstalledApp, app_of, capabilities, command_refusal
from stringd.actions.responses import ActionAnswer, TemplateRun
from stringd.actions.schema import usage
from stringd.actions.secrets import NOTHING_HIDDEN, Mask, secrets_in
from stringd.actions.shell_text import HOME_NAME, ComposedCommand
from stringd.actions.templates import Inputs
from stringd.actions.walls import ActionWalls, CommandCall, wall_hint
from stringd.documents import Action
from stringd.net.cookies import CookieJar
from stringd.net.fetch import Fetched, FetchError, FetchRequest, HopJudge
from stringd.system.command import CommandEnding
from stringd.system.detached import DetachedJob
from stringd.system.sandbox import Level

SHOWN_BODY: Final = 500
"""HTML above this is converted outside the loop thread."""
MAX_TEXT: Final = 256 * 1024
"""An answer is cut in the middle beyond this many characters."""
_DOCUMENTS: Final = ("text/markdown", "text/html")


class CommandPermit(Protocol):
    """Asks whether a command may be started; what it raises for a no passes unchanged."""

    async def __call__(self, text: str, values: Mapping[str, str], directory: Path, /) -> None: ...


class ToolCaller(Protocol):
    """Calls a tool of a mounted server; the answer is what a template sees as its body."""

    async def __call__(self, tool: str, values: Mapping[str, Any]) -> str: ...


@dataclass(frozen=True)
class Engine:
    """What runs actions; one for the daemon."""

    fetch: Callable[[FetchRequest], Awaitable[Fetched]]
    http_timeout: float = 60.0
    cli_timeout: float = 120.0
    show_secrets: bool = False
    base_environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    walls: ActionWalls = field(default_factory=ActionWalls)
    jobs: AppJobs = field(default_factory=AppJobs)
    """What commands of apps left running behind the walls."""


class ActionText(NamedTuple):
    """An answer to show. `templated` text is rendered: its links become shortcuts."""

    text: str
    templated: bool = False


class DocumentAnswer(NamedTuple):
    """An answer that is a document of its own. `shown_url` may be shown, `url` not."""

    fetched: Fetched
    url: str
    shown_url: str
    mask: Mask


class Help(NamedTuple):
    """The caller asked, or has to be told, what the action takes."""

    action: Action


Outcome = ActionText | DocumentAnswer | Help


class ActionCaller(NamedTuple):
    """Who calls: their place, who may end a command early, and who is asked first."""

    place: ActionContext
    holding: Callable[[RunningCommand], AbstractContextManager[None]] = lambda _command: (
        nullcontext()
    )
    """Holds a command while it runs, so that it can be ended early."""
    call_tool: ToolCaller | None = None
    permit: CommandPermit | None = None
    judges: tuple[HopJudge, ...] = ()
    """Asked about every connection, besides what the document's provenance says."""
    cookies: CookieJar | None = None
    """What the site of the page set in this topic."""


async def run_action(
    engine: Engine, action: Action, arguments: CallArguments, caller: ActionCaller
) -> Outcome:
    """Run an action as a caller typed it. Raises `ActionError`, secrets already masked."""
    place = caller.place
    if action.method in ("CLI", "MCP") and not capabilities(place.provenance).commands:
        raise ActionError("FILE_NOT_ALLOWED", command_refusal(place.provenance))
    if arguments.flags.help or (not arguments.words and needs_arguments(action)):
        return Help(action)
    # Also what the document does not get: a command could print it from elsewhere.
    kept = {**place.names.withheld, **place.names.stored}
    exposed = [name for name in kept if any(f"${name}" in v for _, v in action.headers)]
    secrets = {} if engine.show_secrets else secrets_in(kept, exposed)
    mask = Mask(secrets.values()) if secrets else NOTHING_HIDDEN
    call = _Call(engine, action, caller, mask)
    try:
        return await call.run(bind(action, arguments, place))
    except ActionError as error:
        setup = error.setup or call.running
        said = await call.explained(error)
        raise ActionError(error.code, mask(said), setup=setup) from error


class _Call:
    """One bound call on its way."""

    def __init__(self, engine: Engine, action: Action, caller: ActionCaller, mask: Mask) -> None:
        self._engine = engine
        self._action = action
        self._caller = caller
        self._place = caller.place
        self._mask = mask
        self.running = False
        """Whether the call was understood and sent or started."""
        self._bound = Bound({}, ())
        self._answer: dict[str, Any] = {"status": 0, "body": ""}
        """What a template sees, also that of a failed call."""

    async def explained(self, error: ActionError) -> str:
        """What is said about a failure: the author's words if there are any for it."""
        if self._action.error is None or not self.running:
            return error.message
        fields = {**self._answer, "code": error.code, "error": error.message}
        answer = await self._template(self._bound, ActionAnswer(fields), self._action.error)
        return answer.text or error.message

    async def run(self, bound: Bound) -> Outcome:
        self._bound = bound
        inputs = Inputs(bound.values, self._place)
        if self._action.method == "CLI":
            return await self._cli(bound, inputs)
        if self._action.method == "MCP":
            return await self._tool(bound, inputs)
        composer = RequestComposer(self._action, inputs)
        url, shown = composer.address()
        headers = composer.headers()
        self._check_required(bound, inputs)
        call = composer.request(url, shown, headers)
        if self._engine.show_secrets:
            call = HttpCall(call.method, call.url, call.url, call.headers, call.body)
        return await self._http(bound, call)

    def _check_required(self, bound: Bound, inputs: Inputs) -> None:
        missing = [
            field.name
            for field in self._action.fields
            if field.required and field.name not in bound.values and field.name not in inputs.used
        ]
        if missing:
            raise payload_error(
                f"Missing required flags: {', '.join(missing)}\n\n{usage(self._action)}"
            )

    async def _http(self, bound: Bound, call: HttpCall) -> Outcome:
        self.running = True
        place = self._place
        network = ActionNetwork(place.provenance, self._action, place.names.stored)
        request = FetchRequest(
            call.method,
            call.url,
            call.headers,
            call.body,
            self._engine.http_timeout,
            judges=(network, *self._caller.judges),
            cookies=self._caller.cookies,
        )
        try:
            fetched = await self._engine.fetch(request)
        except NotSentError as error:
            raise ActionError("FILE_NOT_ALLOWED", f"Not sent: {error}") from error
        except FetchError as error:
            reason = str(error).replace(call.url, call.shown_url)
            raise ActionError("LOAD_ERROR", f"Network error: {reason}") from error
        if not 200 <= fetched.status < 300:
            self._answer = {"status": fetched.status, "body": parsed(fetched.text())}
        _check_status(fetched, call)
        html = "text/html" in fetched.content_type.lower()
        if self._action.response is None:
            if any(kind in fetched.content_type.lower() for kind in _DOCUMENTS):
                return DocumentAnswer(fetched, call.url, call.shown_url, self._mask)
            return ActionText(self._mask(_cut(fetched.text().rstrip())))
        text = fetched.text()
        if html:
            try:
                text = await markdown_of(text)
            except PageLimitError as error:
                reason = f"The answer of {call.shown_url} cannot be used: {error}"
                raise ActionError("LOAD_ERROR", reason) from error
        fields = {"status": fetched.status, "body": parsed(text)}
        return await self._template(
            bound, ActionAnswer(fields, fetched.body), self._action.response
        )

    async def _template(self, bound: Bound, answer: ActionAnswer, template: str) -> ActionText:
        run = TemplateRun(answer, bound.values, self._place, self._mask)
        return ActionText(_cut(await run.run(template)), templated=True)

    def _check_names(self) -> None:
        names = self._place.names
        missing = [name for name in names.required if names.variable(name) is None]
        if missing:
            listed = ", ".join(f"${name}" for name in missing)
            hint = set_hint(self._place, missing)
            raise ActionError(
                "AUTH_REQUIRED", f"Missing required env: {listed}\n\n{hint}", setup=True
            )

    async def _cli(self, bound: Bound, inputs: Inputs) -> Outcome:
        self._check_names()
        await read_ahead(self._action, inputs, bound.words)
        command = command_for(self._action, inputs, bound.words)
        self._check_required(bound, inputs)
        template = self._action.response
        if self._caller.permit is not None:
            await self._caller.permit(command.text, command.values, self._place.directory)
        environment = self._environment(command)
        directory = self._place.directory
        of_app = isinstance(self._place.provenance, InstalledApp)
        before = entries(directory) if of_app else None
        walls = self._engine.walls
        level = await walls.level(self._place)
        call = CommandCall(command.text, environment, self._given(command, bound.words))
        running = RunningCommand(
            command.text,
            environment,
            directory,
            split=any(_needs_streams(text) for text in (template, self._action.error) if text),
            walls=await walls.enclosed(self._place, call, level),
            kept=self._job_keeper(command),
            sandboxed=level is not Level.OPEN,
        )
        self.running = True
        with self._caller.holding(running):
            output = await running.output(self._engine.cli_timeout)
        answer = await self._command_answer(bound, output, template, level)
        made = made_note(directory, before, answer.text)
        return answer._replace(text=f"{answer.text}\n\n{made}".lstrip("\n")) if made else answer

    def _given(self, command: ComposedCommand, words: tuple[str, ...]) -> list[str]:
        """What the caller and the owner say in a call; what the page itself says does not count."""
        written = {each.default for each in self._action.fields} - {*words}
        said = (each for each in command.values.values() if each not in written)
        return [*said, *self._stored(command).values(), *words]

    def _stored(self, command: ComposedCommand) -> dict[str, str]:
        wanted = command.variables | self._place.names.declared
        stored = self._place.names.stored
        return {name: value for name, value in stored.items() if name in wanted}

    def _job_keeper(self, command: ComposedCommand) -> Callable[[DetachedJob], None]:
        """Only apps leave jobs: with an app they can be seen and go."""
        app = app_of(self._place.provenance)
        if app is None:
            return lambda job: job.kill()
        home = self._place.names.context.get("HOME", "")
        return self._engine.jobs.keeper(home, app, self._mask(command.text))

    def _environment(self, command: ComposedCommand) -> dict[str, str]:
        place = self._place
        own = self._stored(command)
        context = {name: value for name, value in place.names.context.items() if name != "HOME"}
        own |= {**context, HOME_NAME: place.names.context.get("HOME", "")}
        values = {name: value for name, value in own.items() if "\0" not in value}
        return command_environment(self._engine.base_environment, values, command.values)

    async def _command_answer(
        self, bound: Bound, output: CommandOutput, template: str | None, level: Level
    ) -> ActionText:
        handles_failure = (
            template is not None
            and self._action.error is None
            and mentions(template, "exit_code", "status")
        )
        ended_early = output.ending is not CommandEnding.COMPLETED
        if template is not None or self._action.error is not None:
            self._answer = _command_fields(output)
        if ended_early or (output.exit_code != 0 and not handles_failure):
            note = _early_end(output.ending, self._engine.cli_timeout)
            hint = "" if ended_early else wall_hint(self._place, level, output.text)
            text = "\n".join(filter(None, [_cut(output.text), note, hint]))
            raise ActionError(f"EXIT_{output.exit_code}", text)
        if template is None:
            text = _cut(output.text)
            return ActionText(self._mask(f"{text}\n{_TRUNCATED}" if output.truncated else text))
        answer = ActionAnswer(self._answer, output.text.encode())
        return await self._template(bound, answer, template)

    async def _tool(self, bound: Bound, inputs: Inputs) -> Outcome:
        self._check_required(bound, inputs)
        self.running = True
        if self._caller.call_tool is None:
            raise ActionError("LOAD_ERROR", "No server is mounted for this document.")
        text = await self._caller.call_tool(self._action.target, bound.values)
        if self._action.response is None:
            return ActionText(self._mask(_cut(text.rstrip())))
        fields = {"status": 0, "body": parsed(text)}
        return await self._template(
            bound, ActionAnswer(fields, text.encode()), self._action.response
        )


_TRUNCATED: Final = "[… the command printed more than 10 MiB; the rest was not kept]"


def _command_fields(output: CommandOutput) -> dict[str, Any]:
    """What a command's template sees as `Response`."""
    body = parsed(output.text)
    if isinstance(body, str) and output.stderr:
        body = parsed(output.stdout)
        body = output.text if isinstance(body, str) else body
    return {
        "status": output.exit_code,
        "body": body,
        "exit_code": output.exit_code,
        "stdout": output.stdout,
        "stderr": output.stderr,
    }


def _needs_streams(template: str) -> bool:
    """Whether a template looks into the output, so that warnings must not mix with it."""
    return (
        mentions(template, "stdout", "stderr")
        or "Response.body." in template
        or "Response.body[" in template
        or "for:" in template
        or "save:" in template
    )


def _early_end(ending: CommandEnding, limit: float) -> str:
    if ending is CommandEnding.TIMED_OUT:
        return f"Timed out after {limit:g} s; the command was ended."
    return "The command was ended." if ending is CommandEnding.CLOSED else ""


def _check_status(fetched: Fetched, call: HttpCall) -> None:
    if fetched.status == 404:
        raise ActionError("NOT_FOUND", f"Not found: {call.shown_url}")
    if not 200 <= fetched.status < 300:
        body = fetched.text().strip()[:SHOWN_BODY]
        message = f"HTTP {fetched.status} at {call.shown_url}"
        raise ActionError("LOAD_ERROR", f"{message}\n{body}" if body else message)
    if fetched.truncated:
        raise ActionError(
            "LOAD_ERROR",
            f"The answer of {call.shown_url} is larger than {len(fetched.body)} bytes.",
        )


def _cut(text: str) -> str:
    """Text short enough for a reply: beginning and end stay."""
    if len(text) <= MAX_TEXT:
        return text
    half = MAX_TEXT // 2
    left_out = len(text) - 2 * half
    return f"{text[:half]}\n[… {left_out} characters left out …]\n{text[-half:]}"
