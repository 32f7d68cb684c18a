"""The script for the `sh` of another machine, run by the real shells of this one."""

import shutil
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stringd.gate.remote_script import GarbledError, RemoteTalk, greeting, quoted, script
from tests.gate.support import PATIENCE

SHELLS = [name for name in ("sh", "dash", "bash", "zsh") if shutil.which(name)]
TOKEN = "0123456789abcdef"
WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\0")
    | st.sampled_from("'\"\\$`!*?[]{}()<>|&;#~ \t%="),
    max_size=20,
)


def run(shell: str, *pipeline: list[str], **env: str) -> RemoteTalk:
    """The script in a shell, as a session has it: its input stays open."""
    process = subprocess.Popen(
        [shell],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    assert process.stderr is not None
    text = greeting(TOKEN) + script(pipeline, env, TOKEN, as_root=False)
    process.stdin.write(text.encode())
    process.stdin.flush()
    talk = RemoteTalk(TOKEN, len(pipeline))
    talk.feed_stdout(process.stdout.read())
    talk.feed_stderr(process.stderr.read())
    talk.finish()
    for stream in (process.stdin, process.stdout, process.stderr):
        stream.close()
    process.wait(PATIENCE)
    return talk


def printed(talk: RemoteTalk) -> bytes:
    return bytes(talk.stdout.blob())


def complained(talk: RemoteTalk) -> list[bytes]:
    return [bytes(stderr.blob()) for stderr in talk.stderrs]


@pytest.mark.parametrize("shell", SHELLS)
def test_every_word_arrives_as_it_is(shell: str) -> None:
    @settings(max_examples=20, deadline=None)
    @given(st.lists(WORDS, min_size=30, max_size=60))
    def arrives(words: list[str]) -> None:
        line = f"printf '%s\\0' {' '.join(map(quoted, words))}"
        done = subprocess.run([shell], input=line.encode(), capture_output=True, check=True)
        assert done.stdout.split(b"\0")[:-1] == [word.encode() for word in words]

    arrives()


@pytest.mark.parametrize("shell", SHELLS[:3])
def test_a_command_has_its_words_its_variables_and_its_code(shell: str) -> None:
    words = ["sh", "-c", 'printf "%s|" "$@" "$LANG" "$EVIL" "$PWD"; umask; exit 7', "sh"]
    talk = run(shell, [*words, "it's", "a b", "$HOME", "", "-n"], LANG="de_DE'; echo x")
    assert printed(talk) == b"it's|a b|$HOME||-n|de_DE'; echo x||/|0077\n"
    assert talk.codes == {0: 7}
    assert talk.has_all


@pytest.mark.parametrize("shell", SHELLS[:3])
def test_stages_keep_their_codes_and_their_complaints_apart(shell: str) -> None:
    noise = "printf 'a\\n\\0\\377' >&2; echo out; exit 3"
    talk = run(shell, ["sh", "-c", noise], ["sh", "-c", "cat; echo two >&2; exit 4"], ["wc", "-c"])
    assert printed(talk).strip() == b"4"
    assert complained(talk) == [b"a\n\0\xff", b"two\n", b""]
    assert talk.codes == {0: 3, 1: 4, 2: 0}


@pytest.mark.parametrize("shell", SHELLS[:3])
def test_a_stage_that_nobody_reads_any_more_ends(shell: str) -> None:
    talk = run(shell, ["yes"], ["head", "-n", "1"])
    assert printed(talk) == b"y\n"
    assert talk.codes == {0: 141, 1: 0}


def test_a_command_reads_nothing() -> None:
    assert printed(run("sh", ["cat"])) == b""


def test_what_the_login_shell_printed_is_not_the_commands() -> None:
    talk = RemoteTalk(TOKEN, 1)
    talk.feed_stdout(b"Welcome to ")
    talk.feed_stdout(f"web1\n{TOKEN}\nhello".encode())
    talk.feed_stderr(f"Welcome\n{TOKEN} begin 12\nmine\n\n{TOKEN} code 0 0\n".encode())
    talk.finish()
    assert printed(talk) == b"hello"
    assert talk.preamble == b"Welcome"
    assert complained(talk) == [b"mine\n"]


@given(
    st.lists(st.binary(max_size=30), max_size=5),
    st.integers(0, 255),
    st.integers(1, 40),
)
def test_it_does_not_matter_how_the_bytes_arrive(pieces: list[bytes], code: int, size: int) -> None:
    own = b"".join(pieces)
    whole = f"\n{TOKEN} begin 7\n".encode() + own + f"\n{TOKEN} code 0 {code}\n".encode()
    whole += f"\n{TOKEN} end\n".encode()
    talk = RemoteTalk(TOKEN, 1)
    for start in range(0, len(whole), size):
        talk.feed_stderr(whole[start : start + size])
    talk.finish()
    assert complained(talk) == [own]
    assert (talk.codes, talk.pid, talk.has_all) == ({0: code}, 7, True)


@pytest.mark.parametrize("said", ["code 1 0", "code 0 x", "error 9 61", "approve", ""])
def test_what_the_script_never_says_is_an_error(said: str) -> None:
    talk = RemoteTalk(TOKEN, 1)
    with pytest.raises(GarbledError):
        talk.feed_stderr(f"\n{TOKEN} {said}\n".encode())


def test_a_machine_that_never_ends_its_message_is_not_listened_to_for_ever() -> None:
    talk = RemoteTalk(TOKEN, 1)
    with pytest.raises(GarbledError):
        talk.feed_stderr(f"\n{TOKEN} begin ".encode() + b"1" * 10_000)
    with pytest.raises(GarbledError):
        talk.feed_stdout(b"x" * 70_000)
