"""Settings from the environment and the command line."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.server.settings import VARIABLES, SettingsError, load_settings, parse_port

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


def test_every_variable_is_read() -> None:
    settings = load_settings(
        {
            "STRINGD_PORT": " 4000 ",
            "STRINGD_DATA_DIR": "/data",
            "STRINGD_LOG": "1",
            "STRINGD_ALLOW_ORIGINS": " https://a , ,https://b",
            "STRINGD_QUEUE_TIMEOUT_MS": "1500",
            "STRINGD_BASH_TIMEOUT_MS": "2000",
            "STRINGD_BASH_QUIET_MS": "300",
            "STRINGD_ACTION_TIMEOUT_MS": "4000",
            "STRINGD_SHOW_SECRETS": "yes",
        }
    )
    assert (settings.port, settings.data_dir, settings.log) == (4000, Path("/data"), True)
    assert settings.allow_origins == ("https://a", "https://b")
    assert settings.queue_timeout == 1.5
    assert (settings.runtime.bash_timeout, settings.runtime.bash_quiet) == (2, 0.3)
    assert (settings.runtime.http_action_timeout, settings.runtime.cli_action_timeout) == (4, 4)
    assert settings.runtime.show_secrets is True


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


@given(st.text(max_size=8))
def test_any_text_is_a_port_or_blank_or_an_error(text: str) -> None:
    try:
        port = parse_port("P", text)
    except SettingsError:
        return
    assert (port is None and not text.strip()) or (port is not None and 1 <= port <= 65535)
