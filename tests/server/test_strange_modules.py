"""Files where the daemon runs, which agents may write to, are not taken for modules of Python."""

from pathlib import Path

from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person
from tests.support.web import Reply, WebServer

# Loaded at start, by the doctor, with the first page from the web, and with the first shell.
MODULES = ("stringd", "json", "argparse", "httpx2", "httpcore2", "pty", "gzip", "mcp", "keyring")


def test_a_module_beside_the_daemon_is_not_run(tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    with Daemon(tmp_path) as daemon, WebServer(Reply("# Page", "text/markdown")) as web:
        for name in MODULES:
            (tmp_path / f"{name}.py").write_text(f"open({str(canary)!r}, 'a').write('{name} ')\n")
        found = request(daemon.port, "GET", "/doctor")
        owner = Person(daemon.port, "owner", tmp_path / "user")
        assert "Page" in owner.gets(f"/open {web.url}/")
        assert "here" in owner.gets("echo here", "bash:main")
    assert found.status == 200
    assert not canary.exists(), canary.read_text()
