"""Commands whose standard streams are closed, or cannot say everything."""

import subprocess
import sys

import pytest

from tests.support.daemon import WAIT_SECONDS

STRING = f"{sys.executable} -c 'import sys; from stringd.cli.string import main; sys.exit(main())'"
STRINGD = f"{sys.executable} -m stringd"


def shell(line: str, env: dict[str, str]) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        ["bash", "-c", line],
        env=env,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


@pytest.mark.parametrize(
    "line",
    [
        f"{STRING} file:main /info >&-",
        f"{STRING} file:main /info <&- 2>&-",
        f"{STRING} file:main <&-",
        f"{STRING} --daemon status >&-",
        f"{STRINGD} status >&- 2>&-",
        f"{STRINGD} --help >&-",
    ],
)
def test_a_closed_stream_is_no_trouble(env: dict[str, str], line: str) -> None:
    done = shell(line, env)
    assert (done.returncode, done.stderr) == (0, "")


def test_text_an_encoding_does_not_have_is_spelled_out(env: dict[str, str]) -> None:
    for command in (f"{STRING} --daemon status", f"{STRINGD} status"):
        done = shell(command, {**env, "PYTHONIOENCODING": "latin-1"})
        assert done.returncode == 0
        assert "\\u2014" in done.stdout
