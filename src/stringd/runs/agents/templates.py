"""Liquid prompt templates. Reading the environment, files or commands needs the owner's leave."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from stringd.runs.errors import ExecutionError
from stringd.runs.guard.commands import DANGEROUS
from stringd.runs.tools.environment import child_environment
from stringd.runs.tools.sandbox import RunSandbox
from stringd.system.command import output_of
from stringd.system.provider_keys import with_provider_keys
from stringd.system.sandbox import Enclosed, SandboxError
from stringd.system.workers import WorkerError, WorkerTask, ask

GUARDED_FILTERS: Final = ("env", "file", "exec")
# A prompt waits for this command at every call; longer is a mistake.
_EXEC_SECONDS: Final = 10
# Templates come with strategies from elsewhere; these stop one that would never end.
_MAX_LOOPS: Final = 100_000
_MAX_OUTPUT: Final = 1024 * 1024
SMALL_TEMPLATE: Final = 500
"""Characters; a longer template is rendered in a worker."""
RENDERING_SECONDS: Final = 10.0
_RENDERING: Final = WorkerTask(__name__, "render_for_daemon", RENDERING_SECONDS)


class Templates:
    """Renders templates. `allowed` names the guarded filters this daemon lets them use."""

    def __init__(
        self, allowed: frozenset[str] = frozenset(), sandbox: RunSandbox | None = None
    ) -> None:
        self._allowed = allowed
        self._sandbox = sandbox
        self.may_block = "exec" in allowed

    def within(self, sandbox: RunSandbox) -> "Templates":
        """The same, with commands of templates in the sandbox of a run."""
        return Templates(self._allowed, sandbox)

    def render(
        self, text: str, variables: Mapping[str, Any], base: Path, untrusted: str | None = None
    ) -> str:
        """The template's text. Raises `ExecutionError` when it is wrong or not allowed.

        `untrusted` says why it may use no guarded filter, whatever is allowed. A long template is
        rendered in a worker, so the caller must be able to wait.
        """
        if "{{" not in text and "{%" not in text:
            return text
        if len(text) > SMALL_TEMPLATE and not self._allowed:
            return _render_away(text, variables)
        return self.render_here(text, variables, base, untrusted)

    def render_here(
        self, text: str, variables: Mapping[str, Any], base: Path, untrusted: str | None
    ) -> str:
        """`render` in this process, however long it takes."""
        from liquid.exceptions import LiquidError

        environment = _environment()
        for name in GUARDED_FILTERS:
            environment.add_filter(name, self._filter(name, base, untrusted))
        try:
            rendered: str = environment.from_string(text).render(variables)
        except LiquidError as error:
            raise ExecutionError(f"Template failed: {error}") from None
        return rendered

    def _filter(self, name: str, base: Path, untrusted: str | None) -> Any:
        if name not in self._allowed:
            return _refused(
                f'Template filter "{name}" is not allowed. '
                f"The owner of this daemon allows it with STRINGD_TEMPLATE_FILTERS={name}."
            )
        if untrusted is not None:
            return _refused(f'Template filter "{name}" is not allowed here: {untrusted}')
        if name == "exec":
            return self._exec
        return {"env": _env, "file": lambda path: _file(base, path)}[name]

    def _exec(self, command: object) -> str:
        # The owner's leave to run commands is none to run these, nor to see the daemon's keys.
        refused = DANGEROUS.reasons(str(command))
        if refused:
            raise ExecutionError(f"Template command is denied by deny-commands: {refused[0]}")
        started = Enclosed(["/bin/sh", "-c", str(command)], child_environment({}))
        try:
            if self._sandbox is not None:
                started = self._sandbox.enclose_helper(*started)
            output = output_of(started.argv, started.environment, _EXEC_SECONDS).strip()
        except TimeoutError:
            late = f"Template command took over {_EXEC_SECONDS} s: {command}"
            raise ExecutionError(late) from None
        except SandboxError as error:
            raise ExecutionError(f"Template command cannot run: {error}") from None
        if not output:
            raise ExecutionError(f"Template command printed nothing: {command}")
        return output


def _render_away(text: str, variables: Mapping[str, Any]) -> str:
    """Render in a process that can be ended: the lexer takes minutes over some short texts."""
    try:
        answer = json.loads(ask(_RENDERING, text, json.dumps(variables)))
    except WorkerError as error:
        raise ExecutionError(f"Template failed: {error}") from None
    if "error" in answer:
        raise ExecutionError(answer["error"])
    return str(answer["text"])


def render_for_daemon(text: str, variables: str) -> str:
    """What a worker answers: the rendered text, or what is wrong."""
    try:
        rendered = Templates().render_here(text, json.loads(variables), Path("/"), None)
    except ExecutionError as error:
        return json.dumps({"error": str(error)})
    return json.dumps({"text": rendered})


def _environment() -> Any:
    from liquid import Environment

    class BoundedEnvironment(Environment):
        loop_iteration_limit = _MAX_LOOPS
        output_stream_limit = _MAX_OUTPUT

    return BoundedEnvironment()


def _refused(why: str) -> Any:
    def refuse(*_args: object, **_kwargs: object) -> str:
        raise ExecutionError(why)

    return refuse


def _env(name: object) -> str:
    value = with_provider_keys().get(str(name))
    if value is None:
        raise ExecutionError(f"Environment variable is not set: {name}")
    return value


def _file(base: Path, path: object) -> str:
    try:
        with (base / str(path)).open(encoding="utf-8") as file:
            return file.readline().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise ExecutionError(f"Template file cannot be read: {path}: {error}") from None
