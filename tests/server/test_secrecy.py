"""What other processes of the account can learn from a running daemon."""

from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.http import User


def test_no_process_finds_the_keys_of_model_providers(tmp_path: Path) -> None:
    with Daemon(tmp_path, ANTHROPIC_API_KEY="CANARY-KEY", KEPT="kept") as daemon:
        assert daemon.process is not None
        user = User(daemon.port, "default", daemon.home)
        line = f"/exec cat /proc/{daemon.process.pid}/environ /proc/self/environ | tr '\\0' ' '"
        _, found = user.exec(line)
        assert "CANARY-KEY" not in found
        assert "KEPT=kept" in found
