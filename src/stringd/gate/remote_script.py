"""A pipeline as a script for the `sh` of another machine, and what that `sh` says of it. Pure.

The script reaches `sh` on its standard input, so the login shell there reads only `exec sh`. Its
standard output is the last stage's. Its standard error carries messages of ours, each between two
newlines and opened by a token that only this request has; with one stage everything else on it is
the stage's own, with several each stage's is written in such messages, in hexadecimal.

A first line only says that there is a shell. While it did not, nothing can have run.

When its input ends, because we closed it or the connection is gone, the script ends what it
started.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from stringd.gate.capture import Capture
from stringd.gate.resolve import CHILD_PATH

# What ssh and the login shell may say before the script does.
MAX_PREAMBLE: Final = 65_536
_MAX_MESSAGE: Final = 8192
GRACE_SECONDS: Final = 2


class GarbledError(Exception):
    """The other machine said something that the script never says."""


def quoted(word: str) -> str:
    """A word that every `sh` reads as exactly this word."""
    return "'" + word.replace("'", "'\\''") + "'"


def greeting(token: str) -> str:
    """What is sent before the script: a line that runs nothing of the request."""
    return f"printf '\\n%s\\n' '{token} ready' >&2\n"


def script(
    pipeline: Sequence[Sequence[str]],
    env: Mapping[str, str],
    token: str,
    *,
    as_root: bool,
    agent: bool = False,
) -> str:
    """The script that runs a pipeline; with `as_root` through sudo, unless root logs in there."""
    stages = [_stage(words, env, as_root=as_root, agent=agent) for words in pipeline]
    run = _alone(stages[0]) if len(stages) == 1 else " | \\\n".join(map(_tagged, *_count(stages)))
    check = "".join(_allowed(words) for words in pipeline) if as_root else ""
    kill = "kill_all" if as_root else "kill"
    # In braces: all of it is read before anything runs, so its input is free for its end.
    return f"""{{
exec 4<&0 </dev/null 3>&2
PATH={CHILD_PATH}:$PATH
t={token}
say() {{ printf '\\n%s %s\\n' "$t" "$1" >&3; }}
kill_all() {{ if [ "$u" = 0 ]; then kill "$1" 0; else sudo -n kill "$1" -- "-$$"; fi; }}
cd / && umask 077 && u=$(id -u) || exit 125
trap : TERM
printf '%s\\n' "$t"
say "begin $$"
{check}(
  trap '' TERM
  read -r _ <&4
  {kill} -TERM 0
  sleep {GRACE_SECONDS} 3>&-
  say kill
  {kill} -KILL 0
) >/dev/null 2>&1 &
w=$!
{run}
say end
kill -KILL "$w"
exit 0
}}
"""


def _count(stages: Sequence[str]) -> tuple[range, Sequence[str]]:
    return range(len(stages)), stages


def _stage(words: Sequence[str], env: Mapping[str, str], *, as_root: bool, agent: bool) -> str:
    """One command in a subshell that becomes it."""
    sets = "".join(f" {quoted(f'{name}={value}')}" for name, value in env.items())
    own = 'HOME="$HOME" USER="$USER" LOGNAME="$LOGNAME"'
    if agent:
        own += ' SSH_AUTH_SOCK="$SSH_AUTH_SOCK"'
    plain = f'exec env -i {own} PATH={CHILD_PATH}{sets} "$@"'
    argv = f"set -- {' '.join(map(quoted, words))}"
    if not as_root:
        return f"{argv}; {plain}"
    return f'{argv}; if [ "$u" = 0 ]; then {plain}; else exec sudo -n{sets} -- "$@"; fi'


def _allowed(words: Sequence[str]) -> str:
    """Ask sudo before the first stage starts, so that a refusal is told from a failed command."""
    argv = " ".join(map(quoted, words))
    return (
        f'[ "$u" = 0 ] || no=$(sudo -n -l -- {argv} 2>&1 >/dev/null) || '
        "{ say \"refused ${no%%'\n'*}\"; exit 126; }\n"
    )


def _alone(stage: str) -> str:
    return f'({stage}) 3>&- 4<&-\nsay "code 0 $?"'


def _tagged(number: int, stage: str) -> str:
    run = f'({stage}) 2>&1 >&5 3>&- 4<&- 5>&-; say "code {number} $?"'
    tag = f'od -An -v -tx1 | while read -r line; do say "error {number} $line"; done'
    return f"{{ {{ {run}; }} | {{ {tag}; }} >&3 4<&- 5>&-; }} 5>&1"


@dataclass(slots=True)
class RemoteTalk:
    """What came over a session so far: feed it, and its fields say what that was."""

    token: str
    stages: int
    stdout: Capture = field(default_factory=Capture)
    stderrs: tuple[Capture, ...] = ()
    codes: dict[int, int] = field(default_factory=dict)
    is_ready: bool = False
    """There is a shell, and it has not seen the script."""
    pid: int | None = None
    """The process that runs the script there, once it said so."""
    is_over: bool = False
    is_killing: bool = False
    refusal: str | None = None
    preamble: bytes = b""
    """What was said before the script began: by ssh, or by the login shell."""
    _opened: bool = False
    _held: bytes = b""
    _held_out: bytes = b""

    def __post_init__(self) -> None:
        self.stderrs = tuple(Capture() for _ in range(self.stages))

    def feed_stdout(self, data: bytes) -> None:
        """What came on standard output; what the login shell printed before is dropped."""
        if self._opened:
            put(self.stdout, data)
            return
        self._held_out += data
        start = f"{self.token}\n".encode()
        before, found, rest = self._held_out.partition(start)
        if found:
            self._opened, self._held_out = True, b""
            put(self.stdout, rest)
        elif len(before) > MAX_PREAMBLE:
            raise GarbledError

    def feed_stderr(self, data: bytes) -> None:
        """What came on standard error: messages of the script, and what is between them."""
        self._held += data
        opening = f"\n{self.token} ".encode()
        while True:
            at = self._held.find(opening)
            if at < 0:
                break
            end = self._held.find(b"\n", at + 1)
            if end < 0:
                if len(self._held) - at > _MAX_MESSAGE:
                    raise GarbledError
                self._between(self._held[:at])
                self._held = self._held[at:]
                return
            self._between(self._held[:at])
            self._message(self._held[at + len(opening) : end])
            self._held = self._held[end + 1 :]
        keep = _possible_opening(self._held, opening)
        self._between(self._held[: len(self._held) - keep])
        self._held = self._held[len(self._held) - keep :]

    def finish(self) -> None:
        """Nothing more comes: what looked like the opening of a message was not one."""
        self._between(self._held)
        self._held = b""

    @property
    def has_all(self) -> bool:
        """Whether every stage has ended."""
        return self.is_over and len(self.codes) == self.stages

    def _between(self, data: bytes) -> None:
        if self.pid is None:
            self.preamble = (self.preamble + data)[-MAX_PREAMBLE:]
        elif data:
            # Of several stages none writes here: it is what the shell itself complains about.
            put(self.stderrs[-1], data)

    def _message(self, text: bytes) -> None:
        if match := _ERROR.fullmatch(text):
            put(self.stderrs[self._stage(match[1])], bytes.fromhex(match[2].decode()))
        elif match := _CODE.fullmatch(text):
            self.codes[self._stage(match[1])] = int(match[2])
        elif match := _BEGIN.fullmatch(text):
            self.pid = int(match[1])
        elif text == b"ready":
            self.is_ready = True
        elif text == b"end":
            self.is_over = True
        elif text == b"kill":
            self.is_killing = True
        elif text.startswith(b"refused "):
            self.refusal = text.removeprefix(b"refused ").decode("utf-8", "replace")
        else:
            raise GarbledError

    def _stage(self, number: bytes) -> int:
        if int(number) >= self.stages:
            raise GarbledError
        return int(number)


_ERROR: Final = re.compile(rb"error (\d{1,4}) ((?: ?[0-9a-f]{2}){1,64})")
_CODE: Final = re.compile(rb"code (\d{1,4}) (\d{1,3})")
_BEGIN: Final = re.compile(rb"begin (\d{1,10})")


def put(capture: Capture, data: bytes) -> None:
    """Add bytes to a capture."""
    rest = memoryview(data)
    while rest:
        room = capture.room()
        count = min(len(room), len(rest))
        room[:count] = rest[:count]
        capture.took(count)
        rest = rest[count:]


def _possible_opening(data: bytes, opening: bytes) -> int:
    """How many bytes at the end may be the beginning of an opening."""
    sizes: Iterator[int] = iter(range(min(len(data), len(opening) - 1), 0, -1))
    return next((size for size in sizes if opening.startswith(data[-size:])), 0)
