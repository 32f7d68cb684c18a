"""Settings from the environment and the command line."""

import re
from functools import cache
from operator import attrgetter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.server.settings import VARIABLES, SettingsError, load_settings, parse_port

TESTS = Path(__file__).parents[1]
MILLISECONDS = [name for name in VARIABLES if name.endswith("_MS")]


def test_nothing_set_means_the_defaults() -> None:
    settings = load_settings({})
    assert settings.port == 3100
    assert settings.data_dir == Path.cwd() / ".stringd"
    assert settings.queue_timeout == 60
    assert settings.runtime.bash_timeout == 120
    assert (settings.runtime.http_action_timeout, settings.runtime.cli_action_timeout) == (60, 120)
    assert (settings.log, settings.runtime.show_secrets) == (False, False)
    assert settings.allow_origins == ()


READ: dict[str, tuple[str, str, object]] = {
    "STRINGD_PORT": (" 4000 ", "port", 4000),
    "STRINGD_DATA_DIR": ("/data", "data_dir", Path("/data")),
    "STRINGD_LOG": ("1", "log", True),
    "STRINGD_TRACES": ("otlp", "traces", True),
    "STRINGD_LOG_FORMAT": ("json", "log_json", True),
    "STRINGD_LOG_LEVEL": ("error", "log_errors_only", True),
    "STRINGD_ALLOW_ORIGINS": (
        " https://a , ,https://b",
        "allow_origins",
        ("https://a", "https://b"),
    ),
    "STRINGD_ORIGINS": ("strict", "strict_origins", True),
    "STRINGD_SOCKET": ("/run/s", "socket", Path("/run/s")),
    "STRINGD_QUEUE_TIMEOUT_MS": ("1500", "queue_timeout", 1.5),
    "STRINGD_MCP_HOLD_MS": ("100", "mcp_hold", 0.1),
    "STRINGD_BASH_TIMEOUT_MS": ("2000", "runtime.bash_timeout", 2.0),
    "STRINGD_BASH_QUIET_MS": ("300", "runtime.bash_quiet", 0.3),
    "STRINGD_ACTION_TIMEOUT_MS": ("4000", "runtime.cli_action_timeout", 4.0),
    "STRINGD_BASH_SANDBOX": ("workspace", "runtime.bash_sandbox", "workspace"),
    "STRINGD_ACTION_NETWORK": ("hosts", "runtime.action_network", "hosts"),
    "STRINGD_ACTION_SANDBOX": ("workspace", "runtime.action_sandbox", "workspace"),
    "STRINGD_DIFFS": ("1", "runtime.diffs", True),
    "STRINGD_OVERWRITE_GUARD": ("1", "runtime.overwrite_guard", True),
    "STRINGD_SHOW_SECRETS": ("yes", "runtime.show_secrets", True),
    "STRINGD_SECRETS": ("keyring", "runtime.use_keyring", True),
    "STRINGD_HTTP_LOADING": ("0", "runtime.http_loading", False),
    "STRINGD_GITHUB_API": ("https://g.example", "runtime.github_api", "https://g.example"),
    "STRINGD_TEMPLATE_FILTERS": ("env, file", "runs.template_filters", ("env", "file")),
    "STRINGD_CONCURRENT_BROADCAST": ("on", "runs.concurrent_broadcast", True),
    "STRINGD_MODEL_OVERRIDE": ("demo/echo", "runs.model_override", "demo/echo"),
    "STRINGD_RUN_APPROVE_COMMANDS": ("^make\n\n rm ", "runs.approve_commands", ("^make", "rm")),
    "STRINGD_RUN_SANDBOX": ("read-only", "runs.sandbox", "read-only"),
    "STRINGD_SANDBOX_HIDE": ("~/a:/b*", "sandbox_hide", ("~/a", "/b*")),
    "STRINGD_RUN_MAX_TOKENS": ("5", "runs.max_tokens", 5),
    "STRINGD_RUN_MAX_TOOL_CALLS": ("6", "runs.max_tool_calls", 6),
    "STRINGD_RUN_PARALLEL_TOOLS": ("3", "runs.parallel_tools", 3),
    "STRINGD_RUN_TIMEOUT_MS": ("7000", "runs.max_seconds", 7.0),
    "STRINGD_RUN_PROMPT_TIMEOUT_MS": ("8000", "runs.prompt_seconds", 8.0),
    "STRINGD_RUN_MAX_CONCURRENT": ("9", "runs.max_running", 9),
    "STRINGD_MODEL_CATALOG": ("off", "runs.catalog_url", None),
    "STRINGD_RUN_EVENTS_KEEP": ("10", "runs.keep_events", 10),
}
"""Each variable: a value, the setting it becomes, and what that is then."""


def test_no_variable_is_forgotten_here() -> None:
    assert set(READ) == set(VARIABLES)


@pytest.mark.parametrize("name", READ)
def test_every_variable_is_read(name: str) -> None:
    value, setting, expected = READ[name]
    of = attrgetter(setting)
    assert of(load_settings({name: value})) == expected
    assert of(load_settings({})) != expected


def test_both_kinds_of_actions_and_of_secrets_have_one_setting() -> None:
    settings = load_settings({"STRINGD_ACTION_TIMEOUT_MS": "4000", "STRINGD_SECRETS": "keyring"})
    assert (settings.runtime.http_action_timeout, settings.runtime.cli_action_timeout) == (4, 4)
    assert settings.runs.use_keyring


@pytest.mark.parametrize("name", VARIABLES)
def test_every_variable_reaches_a_daemon_in_some_test(name: str) -> None:
    """A setting that is read and then ignored would pass every test above."""
    uses = re.compile(rf"{name}=|[\"']{name}[\"']: ")
    here = {Path(__file__), *TESTS.rglob("requirements.py")}
    others = (path for path in TESTS.rglob("*.py") if path not in here)
    assert any(uses.search(text(path)) for path in others), f"no test starts a daemon with {name}"


@cache
def text(path: Path) -> str:
    return path.read_text("utf-8")


def test_the_shorter_names_count_where_ours_are_unset() -> None:
    later = {"STRING_PORT": "4000", "STRING_DATA_DIR": "/data", "STRING_LOG": "1"}
    settings = load_settings({**later, "STRINGD_PORT": " "})
    assert (settings.port, settings.data_dir, settings.log) == (4000, Path("/data"), True)
    assert load_settings({**later, "STRINGD_PORT": "5000"}).port == 5000
    with pytest.raises(SettingsError, match="STRING_PORT must be a port"):
        load_settings({"STRING_PORT": "0"})


def test_flags_win_over_variables() -> None:
    environ = {"STRINGD_PORT": "4000", "STRINGD_LOG": "0"}
    settings = load_settings(environ, port="5000", runs_port="7422", log=True)
    assert (settings.port, settings.runs_port, settings.log) == (5000, 7422, True)


@pytest.mark.parametrize("value", ["0", "-1", "65536", "abc", "31oo", "3.5", "0x10", "٣", "1 2"])
def test_an_unusable_port_is_named_with_its_value(value: str) -> None:
    said = f"^STRINGD_PORT must be a port between 1 and 65535, not '{value}'$"
    with pytest.raises(SettingsError, match=said):
        load_settings({"STRINGD_PORT": value})


@pytest.mark.parametrize("name", MILLISECONDS)
@pytest.mark.parametrize("value", ["0", "-1", "soon", "1.5", "1s"])
def test_an_unusable_time_is_named_with_its_value(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name} must be .* above 0, not '{value}'$"):
        load_settings({name: value})


@pytest.mark.parametrize(
    ("name", "value"), [("STRINGD_RUN_SANDBOX", "closed"), ("STRINGD_SANDBOX_HIDE", "/a:keys")]
)
def test_an_unusable_sandbox_is_named_with_its_value(name: str, value: str) -> None:
    with pytest.raises(SettingsError, match=f"^{name} .* not '{value.rpartition(':')[2]}'$"):
        load_settings({name: value})


@given(st.text(max_size=8))
def test_any_text_is_a_port_or_blank_or_an_error(text: str) -> None:
    try:
        port = parse_port("P", text)
    except SettingsError:
        return
    assert (port is None and not text.strip()) or (port is not None and 1 <= port <= 65535)
