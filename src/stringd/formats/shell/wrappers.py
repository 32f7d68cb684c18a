"""Commands that start other commands: `sudo`, `env`, `xargs`, `bash -c`, `find -exec` and theirs.

An option that is not in these tables could take the next word as its value; what is started is in
doubt then.
"""

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from stringd.formats.shell.parse import Reading, read
from stringd.formats.shell.words import ANYTHING, INPUT, UNKNOWN, ShellStage, Word

SHELLS: Final = frozenset(
    "sh bash dash zsh ksh ksh93 mksh ash rbash hush yash posh fish csh tcsh osh ysh rc es elvish "  # noqa: SIM905
    "nu xonsh".split()
)
_DEEPEST: Final = 12


class Starter(NamedTuple):
    """Options without a value, with one, and how many words of its own come before the command.

    Long options are listed by name, those with a value with a `=` behind it. After one of `idle`
    nothing is started.
    """

    flags: str = ""
    valued: str = ""
    long: str = ""
    own: int = 0
    assigns: bool = False
    idle: str = ""


_STARTERS: Final[Mapping[str, Starter]] = {
    "sudo": Starter(
        "ABbEHiknNPSs",
        # Where a command works decides what `.` is, so those that change it stay in doubt.
        "aCcghprtTUu",
        "askpass background bell preserve-env set-home login reset-timestamp non-interactive "
        "preserve-groups stdin shell close-from= group= host= prompt= role= type= "
        "command-timeout= other-user= user= login-class=",
        assigns=True,
        idle="eKlVv",
    ),
    "doas": Starter("ns", "aCu", idle="L"),
    "env": Starter(
        "i0v",
        "ua",
        "ignore-environment null debug unset= argv0=",
        assigns=True,
    ),
    "nohup": Starter(),
    "setsid": Starter("cfw", long="ctty fork wait"),
    "time": Starter("pvaq", "fo", "portability verbose append quiet format= output="),
    "nice": Starter("0123456789", "n", "adjustment="),
    "ionice": Starter("t", "cn", "ignore class= classdata="),
    "timeout": Starter("vfp", "ks", "foreground preserve-status verbose kill-after= signal=", 1),
    "stdbuf": Starter("", "ioe", "input= output= error="),
    "exec": Starter("cl", "a"),
    "command": Starter("p", idle="vV"),
    "builtin": Starter(),
    "busybox": Starter(),
    "toybox": Starter(),
    "unbuffer": Starter("p"),
    "chroot": Starter("", "", "skip-chdir userspec= groups=", 1),
    "chrt": Starter("abdfiormv", "TPD", own=1),
    "taskset": Starter("ac", "", "all-tasks cpu-list", 1),
    "flock": Starter(
        "enosuxFv",
        "wE",
        "shared exclusive unlock nonblock no-fork verbose close timeout= conflict-exit-code=",
        1,
    ),
    "watch": Starter("bcdegptwx", "n", "beep color exec no-title precise interval="),
    "xargs": Starter(
        "0oprtx",
        "adEIiLlnPs",
        "null open-tty interactive no-run-if-empty verbose exit arg-file= delimiter= eof= "
        "replace= max-lines= max-args= max-procs= max-chars=",
    ),
}
_BY_TEXT: Final = frozenset(("su", "script", "flock"))


def read_through(line: str, within: ShellStage | None = None) -> Reading:
    """Every command a line runs, those started by others included."""
    found = read(line, within)
    level, depth = list(found.stages), 0
    while level and depth < _DEEPEST:
        following: list[ShellStage] = []
        for stage in level:
            inner = started(stage)
            following += inner.stages
            found.doubts += [each for each in inner.doubts if each not in found.doubts]
            found.bomb = found.bomb or inner.bomb
        found.stages += following
        level, depth = following, depth + 1
    if level:
        found.doubts.append("too many commands start one another")
    return found


def started(stage: ShellStage) -> Reading:
    """What one command starts, one level deep."""
    found = Reading()
    special = _SPECIAL.get(stage.name)
    if stage.name in SHELLS:
        return _shell(stage)
    if special is not None:
        return special(stage)
    if stage.name in _BY_TEXT:
        found = _after_option(stage, ("-c", "--command"))
    starter = _STARTERS.get(stage.name)
    if starter is None or found.stages:
        return found
    words = _command_of(stage, starter)
    if words is None:
        return _doubtful(stage)
    return _one(stage.started(words)) if words else found


def _one(stage: ShellStage) -> Reading:
    found = Reading([stage])
    if not stage.clear:
        found.doubts.append(f"what {stage.text} runs is known only when it runs")
    return found


def _doubtful(stage: ShellStage) -> Reading:
    return Reading(doubts=[f"what {stage.text} runs is not clear"])


def _command_of(stage: ShellStage, starter: Starter) -> tuple[Word, ...] | None:
    """The words of the command it starts; empty for none, None when that is not clear."""
    words = [word for word in stage.words[1:] if (stage.name, word.text) != ("env", "-")]
    long = {each.rstrip("="): each.endswith("=") for each in starter.long.split()}
    while words and words[0].text.startswith("-") and words[0].text != "-":
        option = words.pop(0)
        if option.text == "--":
            break
        takes = _takes_value(option, starter, long)
        if takes is None:
            return () if _idle(option, starter) else None
        if takes and words:
            words.pop(0)
    if starter.assigns:
        while words and _assignment(words[0].text):
            words.pop(0)
    return tuple(words[starter.own :])


def _takes_value(option: Word, starter: Starter, long: Mapping[str, bool]) -> bool | None:
    """Whether the next word belongs to an option; None when nobody knows."""
    if not option.known:
        return None
    if option.text.startswith("--"):
        name, equals, _ = option.text[2:].partition("=")
        return None if name not in long else long[name] and not equals
    for at, letter in enumerate(option.text[1:], 2):
        if letter in starter.valued:
            return at == len(option.text)
        if letter not in starter.flags:
            return None
    return False


def _idle(option: Word, starter: Starter) -> bool:
    letters = option.text[1:]
    asks = option.text in ("--help", "--version")
    return asks or (option.known and letters != "" and set(letters) <= set(starter.idle))


def _assignment(text: str) -> bool:
    name, equals, _ = text.partition("=")
    return bool(equals) and name.isidentifier()


def _script(stage: ShellStage, text: Word | None) -> Reading:
    """A command line handed over as one word."""
    if text is None:
        return Reading()
    if not text.known and UNKNOWN in text.text:
        found = read(text.text.replace(UNKNOWN, "unknown"), stage)
        return Reading(found.stages, _doubtful(stage).doubts, found.bomb)
    return read(text.text, stage)


def _shell(stage: ShellStage) -> Reading:
    """A shell: the text after `-c`, a here-document, or whatever is piped into it."""
    script, operand = shell_arguments(stage.words[1:])
    if script is not None:
        return _script(stage._replace(given=None), script)
    if operand is not None:
        return Reading() if not operand.inside else _doubtful(stage)
    if stage.given is not None:
        return _script(stage._replace(given=None), stage.given)
    return _doubtful(stage) if stage.piped else Reading()


def shell_arguments(words: Sequence[Word]) -> tuple[Word | None, Word | None]:
    """The text a shell is given with `-c`, or else the file it reads; both None for its input."""
    rest, by_text = list(words), False
    while rest and rest[0].text[:1] in ("-", "+") and rest[0].text != "+":
        option = rest.pop(0).text
        if option in ("-", "--"):
            break
        if option.startswith("--"):
            if option in ("--rcfile", "--init-file") and rest:
                rest.pop(0)
            continue
        by_text = by_text or "c" in option
        if set(option) & set("oO") and rest:
            rest.pop(0)
        if "s" in option and not by_text:
            return None, None
    if not rest or rest[0].text in ("-", "/dev/stdin", "/dev/fd/0", "/proc/self/fd/0"):
        return None, None
    return (rest[0], None) if by_text else (None, rest[0])


def _operands(stage: ShellStage) -> Sequence[Word]:
    """What a builtin without options is given; `--` may be before it."""
    words = stage.words[1:]
    return words[1:] if words and words[0].text == "--" else words


def _eval(stage: ShellStage) -> Reading:
    words = _operands(stage)
    if not all(word.known for word in words):
        return _doubtful(stage)
    return read(" ".join(word.text for word in words), stage)


def _sourced(stage: ShellStage) -> Reading:
    """A file that is read is as ordinary as one that is run; what a command prints is not."""
    from_command = any(word.inside for word in _operands(stage)[:1])
    stdin = any(word.text == "/dev/stdin" for word in _operands(stage)[:1])
    return _doubtful(stage) if from_command or stdin else Reading()


def _trap(stage: ShellStage) -> Reading:
    words = [word for word in stage.words[1:] if word.text != "--"]
    if len(words) < 2 or words[0].text in ("-", "-l", "-p"):
        return Reading()
    return _script(stage, words[0])


def _find(stage: ShellStage) -> Reading:
    found = Reading()
    words: list[Word] | None = None
    below = ANYTHING
    if len(stage.words) > 1:
        start = stage.words[1]
        below = Word(f"{start.text}/found", variables=(INPUT, *start.variables))
    for word in stage.words[1:]:
        if word.text in ("-exec", "-execdir", "-ok", "-okdir"):
            words = []
        elif words is not None and word.text in (";", "+"):
            inner = _one(stage.started(tuple(words))) if words else Reading()
            found.stages += inner.stages
            found.doubts += inner.doubts
            words = None
        elif words is not None:
            words.append(below if words and word.text == "{}" else _filled(word, "{}"))
    return found


def _xargs(stage: ShellStage) -> Reading:
    words = _command_of(stage, _STARTERS["xargs"])
    if words is None:
        return _doubtful(stage)
    marks = ["{}", *_replacements(stage.words)]
    for mark in marks:
        words = tuple(_filled(word, mark) for word in words)
    return _one(stage.started((*words, ANYTHING))) if words else Reading()


def _replacements(words: Sequence[Word]) -> list[str]:
    after = {word.text for before, word in pairwise(words) if before.text == "-I"}
    joined = {word.text[2:] for word in words if word.text[:2] == "-I"}
    return [each for each in after | joined if each]


def _filled(word: Word, mark: str) -> Word:
    """A word in which something unknown takes the place of a mark."""
    if mark not in word.text:
        return word
    text = word.text.replace(mark, UNKNOWN)
    return Word(text, False, word.inside, (INPUT, *word.variables))


def _env(stage: ShellStage) -> Reading:
    split = next((w for w in stage.words if w.text.startswith(("-S", "--split-string"))), None)
    if split is not None:
        return _doubtful(stage)
    words = _command_of(stage, _STARTERS["env"])
    if words is None:
        return _doubtful(stage)
    return _one(stage.started(words)) if words else Reading()


def _watch(stage: ShellStage) -> Reading:
    words = _command_of(stage, _STARTERS["watch"])
    if words is None or not all(word.known for word in words):
        return _doubtful(stage)
    return read(" ".join(word.text for word in words), stage)


def _after_option(stage: ShellStage, names: tuple[str, ...]) -> Reading:
    words = stage.words
    for at, word in enumerate(words[:-1]):
        if word.text in names:
            return _script(stage, words[at + 1])
    joined = [w for w in words if any(w.text.startswith(f"{name}=") for name in names)]
    return _doubtful(stage) if joined else Reading()


_SPECIAL: Final[Mapping[str, Callable[[ShellStage], Reading]]] = {
    "env": _env,
    "eval": _eval,
    "source": _sourced,
    ".": _sourced,
    "trap": _trap,
    "find": _find,
    "xargs": _xargs,
    "watch": _watch,
    "parallel": _doubtful,
    "coproc": _doubtful,
}
