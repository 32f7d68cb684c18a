"""Skills: instructions in `SKILL.md` files that agents can be given or can look up."""

import logging
import re
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Final, Literal, NamedTuple

from stringd.formats.front_matter import header_bounds, read_header
from stringd.runs.errors import UntrustedError
from stringd.runs.strategy.files import (
    MAX_FILES,
    PROJECT_FOLDERS,
    Provenance,
    SourceFile,
    StrategyFiles,
)
from stringd.system.safe_open import FileTooLargeError, NotAFileError

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


class SkillsFound(NamedTuple):
    """The skills at hand, by name, and why others are not: an error by name each."""

    skills: tuple[Skill, ...]
    untrusted: Mapping[str, UntrustedError]


def find_skills(data_dir: Path, cwd: Path, files: StrategyFiles) -> SkillsFound:
    """Every skill at hand, sorted; the owner's own wins. Bad files are logged."""
    found: dict[str, Skill] = {}
    untrusted: dict[str, UntrustedError] = {}
    # The first one of a name counts, so those that must not be replaced come first.
    places: list[tuple[Path, Path | None, Literal["global", "project"]]] = [
        (data_dir, None, "global"),
        *((cwd / folder, cwd, "project") for folder in PROJECT_FOLDERS),
    ]
    for place, within, origin in places:
        folder = place / "skills"
        if not folder.is_dir():
            continue
        for path in sorted(islice(folder.glob("*/SKILL.md"), MAX_FILES)):
            try:
                skill, provenance = read_skill(path, origin, files, within)
            except (SkillFileError, OSError) as error:
                log.warning("skill %s is left out: %s", path, error)
                continue
            if provenance == "foreign":
                untrusted[skill.name] = files.needs_trust(path)
            else:
                found.setdefault(skill.name, skill)
    return SkillsFound(tuple(found[name] for name in sorted(found)), untrusted)


def read_skill(
    path: Path,
    origin: Literal["global", "project"],
    files: StrategyFiles,
    within: Path | None = None,
) -> tuple[Skill, Provenance]:
    """One skill file, and whose word it is. Raises `SkillFileError` or `OSError`."""
    read = _read(path, files, within)
    text = _text(read.data)
    bounds = header_bounds(text)
    if bounds.body == bounds.start:
        raise SkillFileError("no front matter between --- lines")
    fields = read_header(text[bounds.start : bounds.end], str)
    name, description = _field(fields, "name"), _field(fields, "description")
    if not _NAME.fullmatch(name):
        raise SkillFileError("name must be lower-case letters, digits and dashes")
    if not description:
        raise SkillFileError("description is missing")
    skill = Skill(name, description, text[bounds.body :].strip("\n"), origin, path)
    return skill, read.provenance


def _read(path: Path, files: StrategyFiles, within: Path | None) -> SourceFile:
    try:
        return files.read(path, MAX_BYTES, within)
    except FileTooLargeError:
        raise SkillFileError("larger than 256 KiB") from None
    except NotAFileError:
        raise SkillFileError("not a regular file") from None


def _text(data: bytes) -> str:
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
