"""Skill files: what their headers may say, and which files are not skills."""

import os
from pathlib import Path

import pytest

from stringd.runs.strategy.files import StrategyFiles
from stringd.runs.strategy.skills import MAX_BYTES, Skill, SkillFileError, find_skills, read_skill


def skill(tmp_path: Path, text: str | bytes) -> Skill:
    path = tmp_path / "SKILL.md"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_skill(path, "global", StrategyFiles())[0]


@pytest.mark.parametrize(
    ("line", "description"),
    [
        ("description: Make tea", "Make tea"),
        ('description: "Make tea"', "Make tea"),
        ("description: Use it: for tea", "Use it: for tea"),
        ("description: >-\n  Make\n  tea", "Make tea"),
        ("description: 5", "5"),
        ("license: [MIT]\ndescription: x\nmetadata:\n  a: b", "x"),
    ],
)
def test_a_description_may_be_written_as_yaml_is(
    tmp_path: Path, line: str, description: str
) -> None:
    found = skill(tmp_path, f"\ufeff---\nname: 123\n{line}\n---\n\nBoil.\n".replace("\n", "\r\n"))
    assert (found.name, found.description, found.body) == ("123", description, "Boil.")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Boil.", "no front matter"),
        ("---\nname: x\n", "no front matter"),
        ("---\nname: Bad Name\ndescription: x\n---\n", "name must be"),
        ("---\ndescription: x\n---\n", "name must be"),
        ("---\nname: x\n---\n", "description is missing"),
        ("---\nname: x\ndescription: [a]\n---\n", "description must be a text"),
        ("---\nname: {a: b}\ndescription: x\n---\n", "name must be a text"),
        (b"---\nname: x\ndescription: \xff\n---\n", "not UTF-8"),
        (b"x" * (MAX_BYTES + 1), "larger than 256 KiB"),
    ],
)
def test_a_file_that_is_not_a_skill_says_why(
    tmp_path: Path, text: str | bytes, problem: str
) -> None:
    with pytest.raises(SkillFileError, match=problem):
        skill(tmp_path, text)


def test_a_pipe_in_place_of_a_skill_is_left_out_and_never_waited_for(tmp_path: Path) -> None:
    for name in ("pipe", "good"):
        (tmp_path / "skills" / name).mkdir(parents=True)
    os.mkfifo(tmp_path / "skills" / "pipe" / "SKILL.md")
    text = "---\nname: tea\ndescription: Make tea\n---\n"
    (tmp_path / "skills" / "good" / "SKILL.md").write_text(text, "utf-8")
    files = StrategyFiles(tmp_path)
    assert [each.name for each in find_skills(tmp_path, tmp_path, files).skills] == ["tea"]
