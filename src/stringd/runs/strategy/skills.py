"""Skills: instructions in `SKILL.md` files that agents can be given or can look up."""

import logging
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

log = logging.getLogger(__name__)

MAX_BYTES: Final = 256 * 1024
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")
_FIELD: Final = re.compile(r"([A-Za-z_][\w-]*)\s*:(?:\s+(.*)|\s*)$")


class Skill(NamedTuple):
    name: str
    description: str
    body: str
    origin: Literal["global", "project"]
    path: Path


class SkillFileError(ValueError):
    """The file is no skill; `str()` says why."""


def find_skills(data_dir: Path, cwd: Path, folders: Sequence[str]) -> tuple[Skill, ...]:
    """Every skill at hand by name, sorted; a project's own wins. Bad files are logged."""
    found: dict[str, Skill] = {}
    for skill in _in(data_dir / "skills", "global"):
        found[skill.name] = skill
    # The first project folder wins, so it comes last.
    for folder in reversed(folders):
        for skill in _in(cwd / folder / "skills", "project"):
            found[skill.name] = skill
    return tuple(found[name] for name in sorted(found))


def _in(folder: Path, origin: Literal["global", "project"]) -> Iterator[Skill]:
    for path in sorted(folder.glob("*/SKILL.md")) if folder.is_dir() else ():
        try:
            yield read_skill(path, origin)
        except (SkillFileError, OSError) as error:
            log.warning("skill %s is left out: %s", path, error)


def read_skill(path: Path, origin: Literal["global", "project"]) -> Skill:
    """One skill file. Raises `SkillFileError` or `OSError`."""
    if path.stat().st_size > MAX_BYTES:
        raise SkillFileError("larger than 256 KiB")
    try:
        text = path.read_bytes().decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise SkillFileError("not UTF-8") from None
    head, body = _split(text)
    fields = dict(_fields(head))
    name, description = fields.get("name", ""), fields.get("description", "")
    if not _NAME.fullmatch(name):
        raise SkillFileError("name must be lower-case letters, digits and dashes")
    if not description:
        raise SkillFileError("description is missing")
    return Skill(name, description, body.strip("\n"), origin, path)


def _split(text: str) -> tuple[list[str], str]:
    lines = text.split("\n")
    if lines[0].rstrip() != "---":
        raise SkillFileError("no front matter between --- lines")
    for index, line in enumerate(lines[1:], 1):
        if line.rstrip() == "---":
            return lines[1:index], "\n".join(lines[index + 1 :])
    raise SkillFileError("the front matter is not closed")


def _fields(lines: Sequence[str]) -> Iterator[tuple[str, str]]:
    for line in lines:
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        match = _FIELD.match(line)
        if match is None:
            raise SkillFileError(f"not a single-line value: {line.strip()[:60]}")
        yield match[1], _scalar(match[1], (match[2] or "").strip())


def _scalar(key: str, value: str) -> str:
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    if value.startswith(("[", "{", "|", ">", "- ")):
        raise SkillFileError(f"{key} must be a single-line text")
    return value


def prompt_section(skills: Sequence[Skill], required: Sequence[str]) -> str | None:
    """What an agent's prompt says about skills, or None when there are none."""
    if not skills:
        return None
    lines = "\n".join(f"- {skill.name}: {skill.description}" for skill in skills)
    parts = [f"## Available Skills\n\n{lines}"]
    by_name = {skill.name: skill for skill in skills}
    bodies = [f"### {name}\n\n{by_name[name].body}" for name in required if name in by_name]
    if bodies:
        parts.append("## Required Skills\n\n" + "\n\n".join(bodies))
    return "\n\n".join(parts)
