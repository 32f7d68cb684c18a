"""Data of later versions is left alone; data of earlier ones is changed after a backup."""

from pathlib import Path

import pytest

from stringd.system.data_format import (
    FORMAT,
    NAME,
    STEPS,
    DataFormat,
    NewerDataError,
    bring_up_to_date,
    read_format,
    refuse_newer,
)


class StepError(Exception):
    """What a step or a backup raises."""


def test_every_format_of_the_past_has_a_step() -> None:
    assert sorted(STEPS) == list(range(1, FORMAT))


def test_a_directory_without_a_number_has_the_first_format(tmp_path: Path) -> None:
    assert read_format(tmp_path) == DataFormat(1, "")
    assert read_format(tmp_path / "missing") == DataFormat(1, "")


def test_what_is_current_is_signed_without_a_backup(tmp_path: Path) -> None:
    asked: list[str] = []
    assert bring_up_to_date(tmp_path, "0.1.0", lambda: asked.append("backup")) == 0
    assert read_format(tmp_path) == DataFormat(FORMAT, "0.1.0")
    assert asked == []


def test_steps_are_taken_in_order_after_one_backup(tmp_path: Path) -> None:
    done: list[str] = []
    steps = {1: lambda _: done.append("to 2"), 2: lambda _: done.append("to 3")}
    taken = bring_up_to_date(
        tmp_path, "9", lambda: done.append("backup"), steps=steps, format_number=3
    )
    assert (taken, done) == (2, ["backup", "to 2", "to 3"])
    assert read_format(tmp_path) == DataFormat(3, "9")


def test_without_a_backup_nothing_is_changed(tmp_path: Path) -> None:
    def fails() -> None:
        raise StepError

    steps = {1: lambda directory: (directory / "changed").touch()}
    with pytest.raises(StepError):
        bring_up_to_date(tmp_path, "9", fails, steps=steps, format_number=2)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_update_continues_with_the_step_that_failed(tmp_path: Path) -> None:
    def fails(_: Path) -> None:
        raise StepError

    done: list[str] = []
    steps = {1: lambda _: done.append("to 2"), 2: fails}
    with pytest.raises(StepError):
        bring_up_to_date(tmp_path, "9", lambda: None, steps=steps, format_number=3)
    assert read_format(tmp_path).number == 2
    steps[2] = lambda _: done.append("to 3")
    bring_up_to_date(tmp_path, "9", lambda: None, steps=steps, format_number=3)
    assert done == ["to 2", "to 3"]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"format": true}', b'{"format": "2"}'])
def test_a_number_that_cannot_be_read_is_not_guessed(tmp_path: Path, content: bytes) -> None:
    (tmp_path / NAME).write_bytes(content)
    with pytest.raises(NewerDataError, match="Nothing was changed"):
        refuse_newer(tmp_path)
