import os
from pathlib import Path

import pytest

from stringd.gate.trust import is_fixed, is_roots_alone, weaknesses
from tests.requirements import proves

as_root = pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
NOBODY = 65534


@proves("GATE-ASK-14")
@as_root
def test_the_file_and_everything_on_the_way_to_it_count(tmp_path: Path) -> None:
    folder, tool = tmp_path / "folder", tmp_path / "folder" / "tool"
    folder.mkdir()
    tool.touch(mode=0o755)
    link = tmp_path / "link"
    link.symlink_to(folder)
    before = weaknesses(str(link / "tool"))
    for path, mode, who in ((tool, 0o777, "everyone"), (folder, 0o775, "group root")):
        path.chmod(mode)
        assert weaknesses(str(link / "tool")) == [*before, (str(path), who)]
        path.chmod(0o755)
    for path in (tool, folder):
        os.chown(path, NOBODY, NOBODY)
        assert weaknesses(str(link / "tool")) == [*before, (str(path), "nobody")]
        os.chown(path, 0, 0)
    os.chown(link, NOBODY, NOBODY, follow_symlinks=False)
    assert (str(link), "nobody") in weaknesses(str(link / "tool"))


@as_root
def test_a_folder_for_everybody_keeps_what_root_has_in_it(tmp_path: Path) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    (shared / "tool").touch()
    shared.chmod(0o777)
    assert (str(shared), "everyone") in weaknesses(str(shared / "tool"))
    shared.chmod(0o1777)
    assert (str(shared), "everyone") not in weaknesses(str(shared / "tool"))


def test_what_leads_nowhere_or_in_circles_is_not_trusted(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    assert not is_roots_alone(str(tmp_path / "loop"))
    assert not is_roots_alone(str(tmp_path / "missing"))


def test_programs_of_the_system_are_fixed_and_ours_are_not(tmp_path: Path) -> None:
    (tmp_path / "tool").touch()
    assert is_fixed("/usr/bin/env")
    assert not is_fixed(str(tmp_path / "tool"))


def test_dots_in_a_path_are_walked_as_the_kernel_does(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "tool").touch()
    found = {weak.path for weak in weaknesses(f"{tmp_path}/link/../tool")}
    assert found <= {str(each) for each in [*tmp_path.parents, *tmp_path.rglob("*"), tmp_path]}
    assert str(tmp_path / "tool") not in found
