"""Serving: what happens when the daemon does not end by itself."""

from pathlib import Path

import pytest

from stringd.runtime.shell.shell import Shell
from stringd.server.app import App
from stringd.server.serve import listeners, run
from stringd.server.settings import load_settings
from stringd.wire.topic import parse_topic
from tests.runtime.shell.support import alive
from tests.support.daemon import free_port


def test_a_failure_leaves_no_shell_behind(tmp_path: Path) -> None:
    pids: list[int] = []

    def fail_with_a_shell_running(app: App) -> None:
        pids.append(_start_a_shell(app, tmp_path))
        raise RuntimeError("no runs today")

    settings = load_settings({"STRINGD_DATA_DIR": str(tmp_path / "data")}, port=str(free_port()))
    with pytest.raises(RuntimeError, match="no runs today"), listeners(settings) as sockets:
        run(settings, sockets, fail_with_a_shell_running)
    assert not alive(pids[0])


def _start_a_shell(app: App, home: Path) -> int:
    app.runtime.topics.register("ada", str(home))
    session = app.runtime.topics.session(app.runtime.topics.slot("ada", parse_topic("bash:x")))
    shell = Shell.launch(home=str(home), cwd=str(home), base={})
    session.running = shell
    return shell.pid
