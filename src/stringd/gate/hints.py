"""What makes a command worth a second look, in one line; and a command sent as one word. Pure."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from stringd.gate.program import ShownProgram
from stringd.gate.versatile import is_shell, runs_its_input

_DOWNLOADS: Final = frozenset({"curl", "wget", "fetch", "aria2c"})
_PIPED_DOWNLOAD: Final = re.compile(
    r"\b(?:curl|wget|fetch)\b[^;&]*\|\s*(?:sudo\s+(?:-\S+\s+)*)?"
    r"(?:\S*/)?(?:(?:ba|da|z|k|a)?sh|python[\d.]*|perl|ruby|node)\b"
)
# More of it would take time, and whoever reads it is warned by its length.
_LOOKED_AT: Final = 2000
_WORDS: Final = 20


def hints(
    pipeline: Sequence[Sequence[str]],
    programs: Sequence[ShownProgram],
    env: Mapping[str, str],
    home: str,
) -> list[str]:
    """What to look at twice, each thing once, the worst first."""
    return list(dict.fromkeys(_hints(pipeline, programs, env, home)))


def _hints(
    pipeline: Sequence[Sequence[str]],
    programs: Sequence[ShownProgram],
    env: Mapping[str, str],
    home: str,
) -> Iterator[str]:
    names = [
        [stage[0], *([programs[index].real or ""] if index < len(programs) else [])]
        for index, stage in enumerate(pipeline)
    ]
    if _runs_a_download(pipeline, names):
        yield "runs what it downloads"
    for stage, known in zip(pipeline, names, strict=True):
        if any(map(is_shell, known)):
            yield "a shell reads its words" if len(stage) > 1 else "a shell reads its input"
        elif any(map(runs_its_input, known)):
            yield f"{_base(stage[0])} runs other programs or code"
    if any(program.weaknesses for program in programs):
        yield "a program others can change"
    if "HOME" in env and env["HOME"] != home:
        yield "HOME is another"


def _runs_a_download(pipeline: Sequence[Sequence[str]], names: Sequence[Sequence[str]]) -> bool:
    downloaded = False
    for stage, known in zip(pipeline, names, strict=True):
        if downloaded and any(map(runs_its_input, known)):
            return True
        downloaded = downloaded or _base(stage[0]) in _DOWNLOADS
        if any(map(runs_its_input, known)) and any(
            _PIPED_DOWNLOAD.search(line)
            for word in stage[1 : _WORDS + 1]
            for line in word[:_LOOKED_AT].splitlines()
        ):
            return True
    return False


def split_form(pipeline: Sequence[Sequence[str]], stage: int) -> str:
    """A pipeline in which one command was sent as a single word, with its words apart."""
    whole = [list(each) for each in pipeline]
    try:
        whole[stage] = shlex.split(whole[stage][0])
    except ValueError:
        whole[stage] = whole[stage][0].split()
    return json.dumps(whole)


def _base(word: str) -> str:
    return word.rpartition("/")[2]
