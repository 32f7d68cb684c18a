import os
from pathlib import Path

import pytest

from stringd.gate.errors import TroubleError
from stringd.gate.resolve import CHILD_PATH, confirm, resolve
from tests.requirements import proves


def script(path: Path, text: str = "#!/bin/sh\n", mode: int = 0o755) -> Path:
    path.write_text(text)
    path.chmod(mode)
    return path


def test_a_name_is_searched_in_the_childs_path(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    found = resolve("env").path
    assert found is not None
    assert str(Path(found).parent) in CHILD_PATH.split(":")


def test_the_first_executable_of_the_search_path_wins(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).mkdir()
    script(tmp_path / "a" / "tool", mode=0o644)
    script(tmp_path / "b" / "tool")
    script(tmp_path / "c" / "tool")
    search = ":".join(str(tmp_path / name) for name in ("missing", "a", "b", "c"))
    assert resolve("tool", search).path == str(tmp_path / "b" / "tool")


def test_a_symbolic_link_is_followed_to_the_real_file(tmp_path: Path) -> None:
    target = script(tmp_path / "target")
    (tmp_path / "link").symlink_to(target)
    program = resolve(str(tmp_path / "link"))
    assert (program.path, program.real) == (str(tmp_path / "link"), str(target))
    assert not program.is_as_written
    assert resolve(str(target)).is_as_written


@pytest.mark.parametrize("word", ["", "nosuchprogram", "/nosuch/file", "/etc/passwd", "/etc"])
def test_what_is_no_program_is_not_found(word: str) -> None:
    program = resolve(word)
    assert program.path is None
    with pytest.raises(OSError, match=r"No such file|Permission denied"):
        confirm(program)


def test_a_relative_path_is_read_from_the_root(tmp_path: Path) -> None:
    tool = script(tmp_path / "tool")
    assert resolve(str(tool).lstrip("/")).path == str(tool)


def test_an_unchanged_file_is_confirmed(tmp_path: Path) -> None:
    tool = script(tmp_path / "tool")
    assert confirm(resolve(str(tool))) == str(tool)


@proves("GATE-EXE-06")
def test_a_replaced_file_is_noticed(tmp_path: Path) -> None:
    tool = script(tmp_path / "tool")
    program = resolve(str(tool))
    script(tmp_path / "other").replace(tool)
    with pytest.raises(TroubleError, match="command changed after approval"):
        confirm(program)


@proves("GATE-EXE-06")
def test_a_rewritten_file_is_noticed_even_at_the_same_size(tmp_path: Path) -> None:
    tool = script(tmp_path / "tool", "#!/bin/sh\nid\n")
    program = resolve(str(tool))
    with open(tool, "r+") as file:
        file.write("#!/bin/sh\nrm\n")
    os.utime(tool, ns=(0, 0))
    with pytest.raises(TroubleError, match="command changed after approval"):
        confirm(program)


@proves("GATE-EXE-06")
def test_a_link_pointed_elsewhere_is_noticed(tmp_path: Path) -> None:
    one, two = script(tmp_path / "one"), script(tmp_path / "two")
    link = tmp_path / "link"
    link.symlink_to(one)
    program = resolve(str(link))
    link.unlink()
    link.symlink_to(two)
    with pytest.raises(TroubleError):
        confirm(program)


def test_a_removed_file_is_noticed(tmp_path: Path) -> None:
    tool = script(tmp_path / "tool")
    program = resolve(str(tool))
    tool.unlink()
    with pytest.raises(TroubleError):
        confirm(program)
