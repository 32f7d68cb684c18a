"""Skills: instructions in `SKILL.md` files that agents can be given or can look up."""

import logging
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.formats.front_matter import header_bounds, read_header
from stringd.system.safe_open import FileTooLargeError, NotAFileError, read_file

log = logging.getLogger(__name__)

MAX_BYTES: Final = 256 * 1024
_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,63}")


class Skill(NamedTuple):
    name: str
    description: str
    body: str
    origin: Literal["global", "project"]
    path: Path


class SkillFileError(ValueError):
    """The file is not a skill; `str()` says why."""


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
    text = _text(path)
    bounds = header_bounds(text)
    if bounds.body == bounds.start:
        raise SkillFileError("no front matter between --- lines")
    fields = read_header(text[bounds.start : bounds.end], str)
    name, description = _field(fields, "name"), _field(fields, "description")
    if not _NAME.fullmatch(name):
        raise SkillFileError("name must be lower-case letters, digits and dashes")
    if not description:
        raise SkillFileError("description is missing")
    return Skill(name, description, text[bounds.body :].strip("\n"), origin, path)


def _text(path: Path) -> str:
    try:
        data = read_file(Path(os.path.realpath(path)), MAX_BYTES).data
    except FileTooLargeError:
        raise SkillFileError("larger than 256 KiB") from None
    except NotAFileError:
        raise SkillFileError("not a regular file") from None
    try:
        return data.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError:
        raise SkillFileError("not UTF-8") from None


def _field(fields: Mapping[str, object], key: str) -> str:
    """A text on one line: prompts list skills so. Raises `SkillFileError`."""
    value = fields.get(key) or ""
    if not isinstance(value, str):
        raise SkillFileError(f"{key} must be a text")
    return " ".join(value.split())


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
