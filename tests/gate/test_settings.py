from pathlib import Path

import pytest

from stringd.gate.settings import data_directory, from_environment, whole_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("5", 5), ("300", 300), (None, 60), ("", 60), ("0", 60), ("-1", 60), ("1.5", 60), ("٣", 60)],
)
def test_a_time_limit_is_a_positive_whole_number_or_the_default(
    text: str | None, seconds: int
) -> None:
    assert whole_seconds(text, 60) == seconds


def test_without_an_environment_the_defaults_hold(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = from_environment({})
    assert (settings.prompt_timeout, settings.exec_timeout, settings.max_future) == (60, 300, 5)
    assert settings.data_dir == Path("~/.string").expanduser()
    assert settings.socket.name in ("stringd-gate.sock", "gate.sock")
    assert settings.socket.is_absolute()


@pytest.mark.parametrize(("text", "bound"), [("0", 0), ("30", 30), ("600", 60), ("x", 5)])
def test_the_future_bound_stays_within_a_minute(text: str, bound: int) -> None:
    assert from_environment({"STRINGD_GATE_MAX_FUTURE": text}).max_future == bound


def test_the_environment_sets_what_it_names() -> None:
    env = {
        "STRINGD_DATA_DIR": "/d",
        "STRINGD_GATE_SOCKET": "/s",
        "STRINGD_GATE_PROMPT_TIMEOUT": "7",
        "STRINGD_GATE_EXEC_TIMEOUT": "8",
        "STRINGD_GATE_NOTIFY": "notify-send",
    }
    settings = from_environment(env)
    assert data_directory(env) == settings.data_dir == Path("/d")
    assert settings.socket == Path("/s")
    assert (settings.prompt_timeout, settings.exec_timeout) == (7, 8)
    assert settings.notify == "notify-send"
