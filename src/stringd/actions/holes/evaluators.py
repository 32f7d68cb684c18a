"""Fixed scripts of other languages that would run what they are given as code or as a command."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from stringd.formats.shell.words import Word

_EVALUATES: Final[Mapping[str, "re.Pattern[str]"]] = {
    "awk": re.compile(r"\bsystem\s*\(|\|\s*&?\s*getline|\bprintf?\b[^\n;}]{0,400}\||@\w+\s*\("),
    "sed": re.compile(
        r"(?:^|[;\n{}!,\d$/])\s*e(?:[\s;}]|$)|"
        r"(?<![a-z])s(?P<d>[!-/:-@\[\]^_`{-~])(?:\\.|(?!(?P=d)).)*(?P=d)"
        r"(?:\\.|(?!(?P=d)).)*(?P=d)[0-9gpiIMm]*e",
        re.DOTALL,
    ),
    "python": re.compile(
        r"\b(?:exec|eval|system|popen|getoutput|getstatusoutput|__import__|import_module|"
        r"run_path|run_module|create_subprocess_shell)\s*\(|(?<!re\.)\bcompile\s*\(|"
        r"\bshell\s*=(?!\s*False\b)|\bpickle\b|\bctypes\b|"
        r"\b(?:exec[lv]\w*|spawn\w*|posix_spawn\w*)\s*\(|"
        r"\b(?:run|call|check_call|check_output|Popen|create_subprocess_exec)\s*\("
        r"\s*\[?\s*\*?\s*(?:sys\.|os\.)?(?:argv|environ|getenv)"
    ),
    "node": re.compile(
        r"\beval\s*\(|\bFunction\s*\(|child_process[\s\S]{0,1000}\bexec(?:Sync)?\b|\bshell\s*:|"
        r"\bspawn(?:Sync)?\s*\(\s*process\.|"
        r"\brunIn\w+\s*\(|\b(?:import|require)\s*\(\s*(?![\"'\s])"
    ),
    "perl": re.compile(
        r"\b(?:system|exec|qx|syscall)\b|\beval\b(?!\s*\{)|`|\b(?:do|require)\s*[$(]|"
        r"\bopen\b\s*\(?[^,;]{0,400},[^,;]{0,400}(?:[;)]|$)|\be[gimsx]*e\b"
    ),
    "ruby": re.compile(
        r"\b(?:\w*eval|system|exec|spawn|popen\w*|capture\w*|pipeline\w*|send|public_send)\b|`|"
        r"%x|\bMarshal\b|\bIO\.|(?<![.\w])open\b|\b(?:load|require\w*)\b\s*\(?\s*(?![\"'\s(])"
    ),
    "php": re.compile(
        r"\b(?:eval|assert|system|exec|passthru|shell_exec|popen|proc_open|pcntl_exec|"
        r"create_function|unserialize|call_user_func\w*)\b|`|\$\w+\s*\(|"
        r"\b(?:include|require)\w*\b\s*\(?\s*(?![\"'\s(])"
    ),
    "lua": re.compile(r"\b(?:load|loadstring|loadfile|dofile|execute|popen|require)\b"),
}
_FAMILIES: Final[Mapping[str, str]] = {
    **dict.fromkeys(("gawk", "mawk", "nawk"), "awk"),
    "gsed": "sed",
    **dict.fromkeys(("nodejs", "bun", "deno", "ts-node", "tsx"), "node"),
    "pypy": "python",
    "luajit": "lua",
}
_NUMBERED: Final = re.compile(r"[\d.]+$")
# Modules that take code, or the name of a program, among their own words.
_RUNNING_MODULES: Final = frozenset(
    ("timeit", "pdb", "cProfile", "profile", "trace", "runpy", "code", "bdb", "coverage", "sqlite3")
)


def evaluates(name: str, code: Sequence[Word]) -> bool:
    """Whether the code that a command line has for an interpreter runs what else it is given."""
    plain = _NUMBERED.sub("", name)
    pattern = _EVALUATES.get(_FAMILIES.get(plain, plain))
    if pattern is None:
        return False
    runs = plain in ("python", "pypy") and any(word.text in _RUNNING_MODULES for word in code)
    return runs or any(pattern.search(word.text) for word in code)
