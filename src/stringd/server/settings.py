"""Every setting of the daemon, read once from the environment and the command line."""

from collections.abc import Mapping
from pathlib import Path
from typing import Final, NamedTuple

from stringd.client import daemon
from stringd.runtime.settings import GITHUB_API, RuntimeSettings

DEFAULT_PORT: Final = daemon.DEFAULT_PORT
MODEL_CATALOG: Final = "https://models.dev/api.json"
TEMPLATE_FILTERS: Final = ("env", "file", "exec")
SANDBOX_LEVELS: Final = ("read-only", "workspace", "open")


class SettingsError(ValueError):
    """A setting has an unusable value; `str()` names the setting and the value."""


class RunsSettings(NamedTuple):
    """What every run is prepared with; template filters are those the owner lets prompts use."""

    template_filters: tuple[str, ...] = ()
    concurrent_broadcast: bool = False
    model_override: str | None = None
    approve_commands: tuple[str, ...] = ()
    max_tokens: int | None = None
    max_tool_calls: int | None = None
    max_seconds: float | None = None
    prompt_seconds: float | None = None
    max_running: int | None = None
    use_keyring: bool = False
    keep_events: int | None = None
    catalog_url: str | None = None
    sandbox: str = "workspace"
    parallel_tools: int = 8


class DaemonSettings(NamedTuple):
    """What `stringd serve` runs with; times are seconds."""

    port: int
    data_dir: Path
    runtime: RuntimeSettings
    runs_port: int | None = None
    queue_timeout: float = 60.0
    mcp_hold: float = 45.0
    allow_origins: tuple[str, ...] = ()
    strict_origins: bool = False
    socket: Path | None = None
    log: bool = False
    log_json: bool = False
    log_errors_only: bool = False
    traces: bool = False
    sandbox_hide: tuple[str, ...] = ()
    runs: RunsSettings = RunsSettings()


VARIABLES: Final = {
    "STRINGD_PORT": "port to listen on (3100)",
    "STRINGD_DATA_DIR": "where the daemon keeps its state (.stringd in the working directory)",
    "STRINGD_LOG": "1 writes logs/stringd.log in the data directory",
    "STRINGD_LOG_FORMAT": "text or json: how its lines are written (text)",
    "STRINGD_LOG_LEVEL": "info or error: error leaves out all that succeeds (info)",
    "STRINGD_TRACES": "otlp sends traces to the collector that OTEL_… variables name (off)",
    "STRINGD_ALLOW_ORIGINS": "web origins that may call the daemon, separated by commas",
    "STRINGD_ORIGINS": "strict lets in no other page of this machine than the daemon's own (local)",
    "STRINGD_SOCKET": "path of the Unix socket, or off (~/.string/stringd.sock)",
    "STRINGD_QUEUE_TIMEOUT_MS": "longest wait for a busy topic (60000)",
    "STRINGD_MCP_HOLD_MS": "longest an MCP call is held before it answers with a handle (45000)",
    "STRINGD_BASH_TIMEOUT_MS": "time limit of a shell command (120000)",
    "STRINGD_BASH_QUIET_MS": "silence after which a shell command is reported as running (10000)",
    "STRINGD_BASH_SANDBOX": "read-only, workspace or open: how far shells and /exec reach (open)",
    "STRINGD_ACTION_TIMEOUT_MS": "time limit of an action (HTTP 60000, CLI 120000)",
    "STRINGD_ACTION_SANDBOX": "read-only, workspace or open: how far actions reach (workspace)",
    "STRINGD_ACTION_NETWORK": "open, hosts or none: what commands of apps reach (open)",
    "STRINGD_DIFFS": "1 shows in the reply to every edit what it changed",
    "STRINGD_OVERWRITE_GUARD": "1 lets a topic overwrite only files that it has read",
    "STRINGD_SHOW_SECRETS": "1 shows persistent variables in full in replies",
    "STRINGD_SECRETS": "keyring keeps persistent variables in the system keyring (files)",
    "STRINGD_HTTP_LOADING": "0 loads nothing from the web, in topics and in runs (1)",
    "STRINGD_GITHUB_API": f"where GitHub packages are listed ({GITHUB_API})",
    "STRINGD_TEMPLATE_FILTERS": "filters prompt templates may use: env, file, exec (none)",
    "STRINGD_CONCURRENT_BROADCAST": "1 runs the steps of a broadcast flow side by side",
    "STRINGD_MODEL_OVERRIDE": "provider/model for every agent of every run",
    "STRINGD_RUN_APPROVE_COMMANDS": "commands agents must ask about: expressions, one a line",
    "STRINGD_RUN_SANDBOX": "read-only, workspace or open: how far commands of agents reach unasked",
    "STRINGD_SANDBOX_HIDE": "more paths hidden from what runs in a sandbox, separated by colons",
    "STRINGD_RUN_MAX_TOKENS": "tokens a run may use before it is stopped (no limit)",
    "STRINGD_RUN_MAX_TOOL_CALLS": "tool calls a run may make before it is stopped (no limit)",
    "STRINGD_RUN_PARALLEL_TOOLS": "tool calls of one answer that may work at once (8)",
    "STRINGD_RUN_TIMEOUT_MS": "wall time a run may take before it is stopped (no limit)",
    "STRINGD_RUN_PROMPT_TIMEOUT_MS": "how long a human may take to answer an agent (for ever)",
    "STRINGD_RUN_MAX_CONCURRENT": "runs that may work at once; the others wait (no limit)",
    "STRINGD_MODEL_CATALOG": "where a newer list of models is fetched, or off (models.dev)",
    "STRINGD_RUN_EVENTS_KEEP": "completed runs whose events can be replayed, newest first (1000)",
}
"""Every environment variable the daemon reads, with what it does and its default."""


def load_settings(
    environ: Mapping[str, str],
    *,
    port: str | None = None,
    runs_port: str | None = None,
    log: bool = False,
) -> DaemonSettings:
    """Read the settings; flags win over variables. Raises `SettingsError`."""
    data_dir = Path(daemon.setting("DATA_DIR", environ)[1] or ".stringd").absolute()
    action = _seconds(environ, "STRINGD_ACTION_TIMEOUT_MS", None)
    runtime = RuntimeSettings(
        data_dir=data_dir,
        bash_timeout=_seconds(environ, "STRINGD_BASH_TIMEOUT_MS", 120.0) or 120.0,
        bash_quiet=_seconds(environ, "STRINGD_BASH_QUIET_MS", 10.0) or 10.0,
        http_action_timeout=action or 60.0,
        cli_action_timeout=action or 120.0,
        diffs=_switch(environ, "STRINGD_DIFFS"),
        overwrite_guard=_switch(environ, "STRINGD_OVERWRITE_GUARD"),
        show_secrets=_switch(environ, "STRINGD_SHOW_SECRETS"),
        use_keyring=_uses_keyring(environ),
        http_loading=_switch(environ, "STRINGD_HTTP_LOADING", default="1"),
        bash_sandbox=_level(environ, "STRINGD_BASH_SANDBOX", "open"),
        action_sandbox=_level(environ, "STRINGD_ACTION_SANDBOX", "") or None,
        action_network=_choice(environ, "STRINGD_ACTION_NETWORK", "open", "hosts", "none"),
        github_api=environ.get("STRINGD_GITHUB_API", "").strip() or GITHUB_API,
    )
    return DaemonSettings(
        port=parse_port("--port", port) or configured_port(environ),
        data_dir=data_dir,
        runtime=runtime,
        runs_port=parse_port("--runs-port", runs_port),
        mcp_hold=_seconds(environ, "STRINGD_MCP_HOLD_MS", 45.0) or 45.0,
        queue_timeout=_seconds(environ, "STRINGD_QUEUE_TIMEOUT_MS", 60.0) or 60.0,
        allow_origins=_words(environ, "STRINGD_ALLOW_ORIGINS"),
        strict_origins=_choice(environ, "STRINGD_ORIGINS", "local", "strict") == "strict",
        socket=_socket(environ, data_dir),
        log=log or _switch(environ, daemon.setting("LOG", environ)[0]),
        log_json=_choice(environ, "STRINGD_LOG_FORMAT", "text", "json") == "json",
        log_errors_only=_choice(environ, "STRINGD_LOG_LEVEL", "info", "error") == "error",
        traces=_traces(environ),
        sandbox_hide=_hidden(environ),
        runs=_runs_settings(environ),
    )


def _runs_settings(environ: Mapping[str, str]) -> RunsSettings:
    filters = _words(environ, "STRINGD_TEMPLATE_FILTERS")
    unknown = [name for name in filters if name not in TEMPLATE_FILTERS]
    if unknown:
        known = ", ".join(TEMPLATE_FILTERS)
        raise SettingsError(f"STRINGD_TEMPLATE_FILTERS may name {known}, not '{unknown[0]}'")
    model = environ.get("STRINGD_MODEL_OVERRIDE", "").strip()
    if model and "/" not in model:
        raise SettingsError(f"STRINGD_MODEL_OVERRIDE must be provider/model, not '{model}'")
    concurrent = _switch(environ, "STRINGD_CONCURRENT_BROADCAST")
    return RunsSettings(
        filters,
        concurrent,
        model or None,
        approve_commands=_expressions(environ, "STRINGD_RUN_APPROVE_COMMANDS"),
        max_tokens=_count(environ, "STRINGD_RUN_MAX_TOKENS"),
        max_tool_calls=_count(environ, "STRINGD_RUN_MAX_TOOL_CALLS"),
        max_seconds=_seconds(environ, "STRINGD_RUN_TIMEOUT_MS", None),
        prompt_seconds=_seconds(environ, "STRINGD_RUN_PROMPT_TIMEOUT_MS", None),
        max_running=_count(environ, "STRINGD_RUN_MAX_CONCURRENT"),
        use_keyring=_uses_keyring(environ),
        keep_events=_count(environ, "STRINGD_RUN_EVENTS_KEEP"),
        catalog_url=_catalog_url(environ),
        sandbox=_level(environ, "STRINGD_RUN_SANDBOX", "workspace"),
        parallel_tools=_count(environ, "STRINGD_RUN_PARALLEL_TOOLS") or 8,
    )


def _traces(environ: Mapping[str, str]) -> bool:
    wanted = _choice(environ, "STRINGD_TRACES", "off", "otlp") == "otlp"
    if wanted:
        from importlib.util import find_spec  # most daemons send none

        if find_spec("opentelemetry") is None or not find_spec("opentelemetry.sdk"):
            raise SettingsError("STRINGD_TRACES=otlp needs pip install 'stringd[otel]'")
    return wanted


def _catalog_url(environ: Mapping[str, str]) -> str | None:
    text = environ.get("STRINGD_MODEL_CATALOG", "").strip() or MODEL_CATALOG
    if text == "off":
        return None
    if not text.startswith(("https://", "http://")):
        raise SettingsError(f"STRINGD_MODEL_CATALOG must be a web address or off, not '{text}'")
    return text


def _expressions(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    import re  # the daemon starts without it

    found = tuple(line.strip() for line in environ.get(name, "").splitlines() if line.strip())
    for expression in found:
        try:
            re.compile(expression)
        except re.error as error:
            raise SettingsError(
                f"{name} holds '{expression}', which is not a regular expression: {error}"
            ) from None
    return found


def _count(environ: Mapping[str, str], name: str) -> int | None:
    text = environ.get(name, "").strip()
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise SettingsError(f"{name} must be a whole number above 0, not '{text}'")
    return int(text)


def configured_port(environ: Mapping[str, str]) -> int:
    """The port of `STRINGD_PORT`, or the default when it is unset or blank."""
    return parse_port(*daemon.setting("PORT", environ)) or DEFAULT_PORT


def parse_port(name: str, value: str | None) -> int | None:
    """A port number, None for blank. Raises `SettingsError` naming the setting and the value."""
    text = (value or "").strip()
    try:
        return daemon.parse_port(name, text) if text else None
    except daemon.UsageError as error:
        raise SettingsError(str(error)) from error


def _seconds(environ: Mapping[str, str], name: str, default: float | None) -> float | None:
    text = environ.get(name, "").strip()
    if not text:
        return default
    if not (text.isascii() and text.isdigit() and int(text) > 0):
        raise SettingsError(f"{name} must be a number of milliseconds above 0, not '{text}'")
    return int(text) / 1000


def _words(environ: Mapping[str, str], name: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in environ.get(name, "").split(",") if word.strip())


def _uses_keyring(environ: Mapping[str, str]) -> bool:
    return _choice(environ, "STRINGD_SECRETS", "files", "keyring") == "keyring"


def _choice(environ: Mapping[str, str], name: str, usual: str, *others: str) -> str:
    text = environ.get(name, "").strip() or usual
    if text not in (usual, *others):
        raise SettingsError(f"{name} must be {' or '.join((usual, *others))}, not '{text}'")
    return text


def _level(environ: Mapping[str, str], name: str, usual: str) -> str:
    text = environ.get(name, "").strip() or usual
    if text and text not in SANDBOX_LEVELS:
        raise SettingsError(f"{name} must be {', '.join(SANDBOX_LEVELS)}, not '{text}'")
    return text


def _hidden(environ: Mapping[str, str]) -> tuple[str, ...]:
    found = tuple(filter(None, environ.get("STRINGD_SANDBOX_HIDE", "").split(":")))
    for path in found:
        if not path.startswith(("/", "~/")):
            raise SettingsError(
                f"STRINGD_SANDBOX_HIDE needs paths with / or ~/ first, not '{path}'"
            )
    return found


def _socket(environ: Mapping[str, str], data_dir: Path) -> Path | None:
    """Where the Unix socket is: a daemon with a data directory of its own has it there."""
    told = environ.get("STRINGD_SOCKET", "").strip()
    if told:
        return None if told == "off" else Path(daemon.absolute(told))
    shared = Path(daemon.absolute("~/.string"))
    chosen = daemon.setting("DATA_DIR", environ)[1]
    return (data_dir if chosen and data_dir != shared / "daemon" else shared) / "stringd.sock"


def _switch(environ: Mapping[str, str], name: str, default: str = "0") -> bool:
    text = environ.get(name, "").strip().lower() or default
    return text in ("1", "true", "yes", "on")
