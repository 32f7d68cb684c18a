"""Persistent values in a keyring instead of files."""

from pathlib import Path

from tests.requirements import proves
from tests.runtime.commands.conftest import Caller
from tests.support.daemon import Daemon

ROOT = Path(__file__).parents[3]


@proves("ACT-31")
def test_values_live_in_the_keyring_and_survive_a_restart(tmp_path: Path) -> None:
    daemon = Daemon(
        tmp_path,
        STRINGD_SECRETS="keyring",
        PYTHON_KEYRING_BACKEND="tests.support.keyring_file.FileKeyring",
        PYTHONPATH=str(ROOT),
        TEST_KEYRING=str(tmp_path / "keyring.json"),
    )
    with daemon:
        call = Caller(daemon)
        (call.home / "a.md").write_text('```act.x\nCLI test "$WORD" = "a b" && echo yes\n```\n')
        assert call("file:main", '/set $WORD = "a b"').content == '$WORD = "a b" (global)'
        call("file:main", "/open a.md")
        assert call("file:main", "/act.x").content == "yes"
        assert "a b" not in (call.home / "config.json").read_text(encoding="utf-8")
        assert "a b" in (tmp_path / "keyring.json").read_text(encoding="utf-8")
    with daemon:
        assert Caller(daemon)("file:main", "/act.x").content == "yes"


def test_a_keyring_that_cannot_be_used_is_a_clear_error(tmp_path: Path) -> None:
    with Daemon(
        tmp_path,
        STRINGD_SECRETS="keyring",
        PYTHON_KEYRING_BACKEND="keyring.backends.fail.Keyring",
    ) as daemon:
        reply = Caller(daemon)("file:main", '/set $WORD = "a b"')
        assert reply.code == "INTERNAL_ERROR"
        assert "The system keyring cannot be used" in reply.content
        assert not (daemon.home / "config.json").exists()
