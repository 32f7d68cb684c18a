"""Our shell against a bash that reads the same lines at its own prompt."""

import subprocess
from typing import Final

import pytest

from stringd.runtime.shell.shell import Shell
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.anyio

BASH: Final = ("bash", "--norc", "--noprofile", "--noediting", "-i")
TEXTS: Final = (
    *(
        "true",
        "false",
        "(exit 7)",
        "! true",
        "! false",
        "x=$(false)",
        "eval false",
        "command false",
    ),
    *("[ -f /nope ] && echo x", "false || false", "false && true", "eval 'false || false'"),
    *("true | false", "false | true", "set -o pipefail; false | true", "time false", "false &"),
    *("nosuchprogram", "/etc/passwd", "cd /nope", ". /nope", "exec /nope", "exec 5</nope"),
    *("echo ${none?msg}", "${none:?x}", "set -u; echo $NONE", "echo $((1/0))", "((0))", "let 0"),
    *("return 3", "break", "shift 5", "local x", "fg", "wait 99999", "test", "[[ a == b ]]"),
    *("f() { return 5; }; f", "f() { false; echo in; }; f", "{ false; echo y; }", "eval '('"),
    *(
        "if false; then :; fi",
        "while false; do :; done",
        "case x in y) ;; esac",
        "read x </dev/null",
    ),
    *("readonly R=1; R=2", "readonly Q=1; Q=2; echo after", "declare -i x=1/0", "shopt -s nope"),
    *("kill -INT $$", "kill -TERM $$; echo survived", "bash -c 'kill -9 $$'", "sh -c 'exit 300'"),
    *("echo hi >/nope/x", ">/nope/y", "false >/dev/null", "true </nope", "printf '%d' abc"),
    *("trap 'echo T' ERR; false", "trap 'echo T' ERR; [ -f /nope ] && x", "exit 9", "exit"),
    *("false\ntrue", "true\nfalse", "cat <<X\nhello\nX\nfalse", "alias zz=false\nzz"),
    *("set -e; false || true; echo z", "(set -e; false; echo no)", "set -e; [ -f /nope ] && x"),
)


@proves("BASH-21")
@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("before", ["true", "set -e", "set -eE; trap 'echo E' ERR"])
async def test_status_and_survival_are_those_of_a_bash_at_its_prompt(
    shell: Shell, before: str, text: str
) -> None:
    await shell.run(before)
    reply = await shell.run(text)
    assert (not shell.ended, reply.exit_code) == typed(before, text)


def typed(before: str, text: str) -> tuple[bool, int]:
    """Whether a bash that was told both lives on, and the status of the second."""
    done = subprocess.run(
        BASH,
        input=f'{before}\n{text}\necho "status $?"\n',
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        start_new_session=True,
        check=False,
    )
    _, lives, status = done.stdout.rpartition("status ")
    return bool(lives), int(status) if lives else done.returncode


async def test_a_trap_on_errors_is_sprung_once(shell: Shell) -> None:
    await shell.run("n=0; trap 'n=$((n + 1))' ERR")
    await shell.run("false")
    assert (await shell.run("echo $n")).output == "1"
