"""A live shell keeps its state and tells the truth about every command."""

import asyncio
import os
from pathlib import Path

import pytest

from stringd.runtime.shell.errors import UnusableInputError
from stringd.runtime.shell.reply import ShellEnding, ShellReply
from stringd.runtime.shell.shell import Shell
from tests.requirements import proves
from tests.runtime.shell.conftest import StartShell
from tests.runtime.shell.support import read, write

pytestmark = pytest.mark.anyio


async def outputs(shell: Shell, *texts: str) -> list[str]:
    return [(await shell.run(text)).output for text in texts]


async def test_a_reply_carries_status_directory_and_output(shell: Shell, tmp_path: Path) -> None:
    assert await shell.run("echo hi") == ShellReply(ShellEnding.COMPLETED, 0, str(tmp_path), "hi")
    assert await shell.run("(exit 7)") == ShellReply(ShellEnding.COMPLETED, 7, str(tmp_path), "")


async def test_directory_variables_functions_aliases_options_and_traps_persist(
    shell: Shell,
) -> None:
    await shell.run("cd /usr; x=1; f() { echo f$1; }; alias ll='echo aliased'; set -f")
    await shell.run("trap 'echo trapped' USR1")
    assert await outputs(shell, "pwd", "echo $x", "f 2", "ll", "echo *", "kill -USR1 $$") == [
        "/usr",
        "1",
        "f2",
        "aliased",
        "*",
        "trapped",
    ]


async def test_the_directory_is_exact(shell: Shell, tmp_path: Path) -> None:
    (tmp_path / "deep er").mkdir()
    (tmp_path / "link").symlink_to("deep er")
    assert (await shell.run("cd 'deep er'")).cwd == str(tmp_path / "deep er")
    assert (await shell.run("(cd /)")).cwd == str(tmp_path / "deep er")
    assert (await shell.run("cd ../link")).cwd == str(tmp_path / "link")
    assert (await shell.run("PWD=/lie")).cwd == str(tmp_path / "deep er")
    assert (await shell.run("unset PWD; set -u")).exit_code == 0


async def test_a_directory_keeps_the_name_it_was_given(
    start_shell: StartShell, tmp_path: Path
) -> None:
    (tmp_path / "real" / "deep").mkdir(parents=True)
    named = tmp_path / "named"
    named.symlink_to(tmp_path / "real")
    shell = await start_shell(cwd=named)
    reply = await shell.run("pwd; cd deep")
    assert (reply.output, reply.cwd) == (str(named), str(named / "deep"))


async def test_a_home_that_nobody_made_yet_is_where_a_shell_starts(tmp_path: Path) -> None:
    home = str(tmp_path / "people" / "ann")
    shell = Shell.launch(home=home, cwd=home, base=os.environ)
    await shell.ready()
    reply = await shell.run("pwd")
    await shell.close()
    assert (reply.cwd, reply.output) == (home, home)


async def test_a_directory_removed_under_the_shell_is_still_named(
    shell: Shell, tmp_path: Path
) -> None:
    reply = await shell.run("mkdir gone; cd gone; rmdir ../gone")
    assert reply.cwd == str(tmp_path / "gone")


async def test_a_shell_starts_where_it_is_told(start_shell: StartShell) -> None:
    assert (await (await start_shell(cwd=Path("/usr"))).run("pwd")).output == "/usr"


async def test_variables_of_the_session_are_in_its_environment(start_shell: StartShell) -> None:
    shell = await start_shell(variables={"city": "Seoul", "_hidden": "x"})
    assert (await shell.run("echo $city-$_hidden")).output == "Seoul-"


async def test_no_history_is_read_or_written(start_shell: StartShell, tmp_path: Path) -> None:
    (tmp_path / ".bash_history").write_text("echo from another life\n")
    shell = await start_shell()
    assert (await shell.run("history; echo $((2 + 2))!")).output == "4!"
    await shell.close()
    assert (tmp_path / ".bash_history").read_text() == "echo from another life\n"


async def test_no_startup_file_is_read(start_shell: StartShell, tmp_path: Path) -> None:
    for name in (".bashrc", ".bash_profile", ".profile"):
        (tmp_path / name).write_text("echo startup file\n")
    shell = await start_shell(BASH_ENV=str(tmp_path / ".bashrc"))
    assert (await shell.run("echo mine; bash -c 'echo child'")).output == "mine\nchild"


async def test_the_terminal_is_real_and_of_fixed_size(shell: Shell) -> None:
    reply = await shell.run("test -t 0 && test -t 1 && test -t 2 && stty size; echo $TERM")
    assert reply.output == "24 200\ndumb"


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("echo $((1/0)); echo not reached", 1),
        ("echo ${nothing:?unset}; echo not reached", 1),
        ("readonly r=1; r=2; echo not reached", 1),
        ("set -u; echo $nothing; echo not reached", 1),
        ("nosuchprogram", 127),
        ("exec nosuchprogram", 127),
        ("/", 126),
        ("sh -c 'kill -TERM $$'", 143),
        ("kill -INT $$; echo not reached", 130),
        ("false\ntrue\n(exit 9)", 9),
    ],
)
async def test_failures_of_every_kind_report_their_status_and_leave_the_shell_alive(
    shell: Shell, text: str, status: int
) -> None:
    await shell.run("kept=1")
    reply = await shell.run(text)
    assert (reply.ending, reply.exit_code) == (ShellEnding.COMPLETED, status)
    assert "not reached" not in reply.output
    assert (await shell.run("echo $kept")).output == "1"


@proves("BASH-21")
@pytest.mark.parametrize("status", [0, 1, 2, 127, 255])
async def test_the_next_input_finds_the_last_status(shell: Shell, status: int) -> None:
    await shell.run(f"(exit {status})")
    assert (await shell.run("echo $?; declare -F")).output == str(status)
    assert (await shell.run("echo $?")).output == "0"


async def test_recalling_a_status_neither_ends_the_shell_nor_springs_a_trap(shell: Shell) -> None:
    await shell.run("set -eEH; trap 'echo sprung >>traps' ERR")
    assert (await shell.run("kill -INT $$")).exit_code == 130
    assert (await shell.run("echo $?; test ! -e traps")).output == "130"


async def test_return_outside_a_function_does_not_confuse_the_shell(shell: Shell) -> None:
    assert (await shell.run("return 3")).exit_code != 0
    assert (await shell.run("f() { return 3; }; f")).exit_code == 3


@pytest.mark.parametrize(
    "text", ['echo "unclosed', "echo 'unclosed", "if true; then", "echo $(", "for x in a; do"]
)
async def test_unfinished_input_is_an_error_not_a_wait(shell: Shell, text: str) -> None:
    reply = await shell.run(text)
    assert reply.ending is ShellEnding.COMPLETED
    assert reply.exit_code in (1, 2)
    assert (await shell.run("echo next")).output == "next"


async def test_here_documents_and_several_lines_are_one_sequence(shell: Shell) -> None:
    reply = await shell.run("cat <<'EOF'\n$x 'y' \"z\" \\ !\nEOF\necho done")
    assert reply.output == "$x 'y' \"z\" \\ !\ndone"


async def test_text_reaches_the_shell_unchanged(shell: Shell) -> None:
    text = "é 🌍 \\ ! $'x' \t `~#%^&*(){}[]|;<>?/ \x01 \x7f"
    await shell.run(f"cat > text <<'EOF'\n{text}\nEOF")
    assert (Path((await shell.run("pwd")).output) / "text").read_text() == text + "\n"


async def test_input_of_a_megabyte_is_taken(shell: Shell) -> None:
    reply = await shell.run(f"x='{'a' * 1_000_000}'; echo ${{#x}}")
    assert reply.output == "1000000"


async def test_a_nul_character_is_refused_and_nothing_runs(shell: Shell) -> None:
    with pytest.raises(UnusableInputError):
        await shell.run("echo \0")
    assert (await shell.run("echo next")).output == "next"


async def test_the_callers_prompt_and_options_do_not_show_in_replies(shell: Shell) -> None:
    await shell.run("PS1='prompt> '; PS2='more> '; PROMPT_COMMAND='echo prompt command'")
    assert (await shell.run("echo a\necho b")).output == "a\nb"
    await shell.run("PROMPT_COMMAND='exit_code=$?; (exit 5)'")
    assert (await shell.run("true")).exit_code == 0


async def test_tracing_shows_the_callers_commands_only(shell: Shell) -> None:
    await shell.run("set -x")
    assert (await shell.run("echo a")).output == "++ echo a\na"
    await shell.run("set +x; set -v")
    assert (await shell.run("echo b")).output == "echo b\nb"


async def test_a_debug_trap_sees_the_callers_commands_only(shell: Shell) -> None:
    await shell.run("trap 'echo \"> $BASH_COMMAND\"' DEBUG")
    assert (await shell.run("echo a")).output == "> echo a\na"


async def test_output_that_looks_like_a_report_is_output(shell: Shell) -> None:
    await shell.run("n=2")
    reply = await shell.run(r"printf '2\0000\0/lie\0'; false")
    assert (reply.exit_code, reply.output) == (1, "20/lie")


async def test_terminal_tricks_do_not_hide_the_end(shell: Shell) -> None:
    for text in ("stty -echo", "stty raw", "stty sane -echo -onlcr", r"printf '\033c\033[2J'"):
        assert (await shell.run(text)).exit_code == 0
    assert (await shell.run("printf 'no newline'")).output == "no newline"


async def test_redirected_output_of_the_shell_itself_does_not_outlast_the_input(
    shell: Shell,
) -> None:
    await shell.run("exec >swallowed 2>&1 </dev/null")
    assert (await shell.run("echo heard")).output == "heard"


async def test_a_line_of_a_megabyte_comes_back_cut_in_the_middle(shell: Shell) -> None:
    reply = await shell.run("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo last")
    assert reply.truncated
    assert reply.output.startswith("xxx")
    assert reply.output.endswith("last")


async def test_nul_bytes_and_noise_are_made_harmless(shell: Shell) -> None:
    assert (await shell.run(r"printf 'a\0b\377c\033[31md'")).output == "ab\ufffdcd"
    assert (await shell.run("head -c 100000 /bin/bash; false")).exit_code == 1


async def test_half_a_character_at_the_end_is_shown(shell: Shell) -> None:
    assert (await shell.run("printf 'caf\\xc3'")).output == "caf\ufffd"
    assert (await shell.run("echo clean")).output == "clean"


async def test_a_progress_bar_is_reduced_to_its_last_state(shell: Shell) -> None:
    text = r"for i in 1 50 100; do printf '\r%d%%' $i; done; echo"
    assert (await shell.run(text)).output == "100%"


async def test_large_output_is_complete_in_order_and_readable_later(shell: Shell) -> None:
    reply = await shell.run("seq 1 200000")
    assert reply.truncated
    assert reply.output.startswith("1\n2\n")
    assert reply.output.endswith("\n199999\n200000")
    assert shell.command is not None
    transcript = shell.command.output.transcript
    assert transcript.lines == 200_000
    assert transcript.read_lines(123_456, 123_457) == ["123456", "123457"]


async def test_background_jobs_print_into_nobodys_reply(shell: Shell, tmp_path: Path) -> None:
    await shell.run("mkfifo go said; { read x <go; echo late; echo >said; } &")
    await shell.run("echo >go; read x <said")
    assert (await shell.run("echo now")).output == "now"


async def test_what_jobs_print_while_nothing_runs_can_be_read_apart(shell: Shell) -> None:
    await shell.run("mkfifo go said; { read x <go; echo late; echo >said; sleep 1000; } &")
    await write(shell, "go")
    await read(shell, "said")
    assert (await shell.run("echo now")).output == "now"
    assert shell.background.read().text == "late"


async def test_two_shells_run_side_by_side(start_shell: StartShell) -> None:
    """Each waits for the other: one after the other they would never end."""
    one, two = await start_shell(), await start_shell()
    await one.run("mkfifo a b")
    first, second = await asyncio.gather(
        one.run("echo from one >a; cat b"), two.run("cat a; echo from two >b")
    )
    assert (first.output, second.output) == ("from two", "from one")


async def test_a_shell_without_its_own_terminal_descriptor_still_answers(shell: Shell) -> None:
    await shell.run("exec 255>&-")
    reply = await shell.run("head -c 300000 /dev/zero | tr '\\0' x; echo; echo last")
    assert reply.exit_code == 0
    assert reply.output.endswith("last")
