"""`stringd sandbox`: the walls of this machine and the apps outside them."""

import json
from pathlib import Path

import pytest

from stringd.cli.sandbox import main


@pytest.fixture(autouse=True)
def own_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))


def test_it_opens_closes_and_lists(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("sandbox", ["open", "notes"]) == 0
    assert "open apps: notes\n" in capsys.readouterr().out
    assert main("sandbox", ["--json"]) == 0
    said = json.loads(capsys.readouterr().out)
    assert said["open"] == ["notes"]
    assert said["sandbox"]["walls"] in ("bubblewrap", "landlock", "none")
    assert main("sandbox", ["close", "notes"]) == 0
    assert "open apps: (none)\n" in capsys.readouterr().out


def test_opening_a_name_that_no_app_has_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / ".string/users/default/packages/notes").mkdir(parents=True)
    assert main("sandbox", ["open", "notes"]) == 0
    assert capsys.readouterr().err == ""
    assert main("sandbox", ["open", "notse"]) == 0
    assert "stringd sandbox close notse" in capsys.readouterr().err


def test_closing_what_is_not_open_fails_and_says_where_to_look(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main("sandbox", ["close", "notes"]) == 1
    assert "See stringd sandbox" in capsys.readouterr().err


@pytest.mark.parametrize("argv", [["open"], ["notes"], ["shut", "notes"]])
def test_what_it_does_not_understand_it_says(
    argv: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main("sandbox", argv)
    assert ended.value.code == 2
    assert "usage: stringd sandbox" in capsys.readouterr().err
