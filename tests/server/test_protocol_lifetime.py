"""`/health`, `/shutdown`, starting and stopping."""

import json
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from stringd.server.settings import DEFAULT_PORT, load_settings
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS, Daemon, free_port
from tests.support.http import Blocked, User, Wire, events, message, request


@proves("HEALTH-01", "HEALTH-02", "TRUST-04")
def test_health_counts_users_and_sessions(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        fresh = request(daemon.port, "GET", "/health")
        assert fresh.body.startswith(b'{"ok":true,"users":0,"sessions":0,"status":"ok","uptime":')
        assert list(fresh.json) == [
            "ok",
            "users",
            "sessions",
            "status",
            "uptime",
            "activeRuns",
            "connectedClients",
            "agents",
            "version",
            "pid",
            "dataDir",
            "damage",
        ]
        assert daemon.process is not None
        assert fresh.json["pid"] == daemon.process.pid
        assert fresh.json["dataDir"] == str(daemon.data_dir)
        assert fresh.json["damage"] == []
        assert isinstance(fresh.json["uptime"], int)
        user = User(daemon.port, "one", tmp_path / "one")
        User(daemon.port, "two", tmp_path / "two")
        for topic in ("file:a", "file:b", "bash:c"):
            request(daemon.port, "POST", "/sessions", {"user_id": user.id, "topic": topic})
        full = request(daemon.port, "GET", "/health").json
        assert (full["users"], full["sessions"]) == (2, 3)
        assert (full["activeRuns"], full["connectedClients"]) == (0, 0)


@proves("HEALTH-03", "TRUST-04")
@pytest.mark.parametrize("body", [None, b"{}", b"junk"])
def test_shutdown_answers_and_then_the_process_ends(tmp_path: Path, body: bytes | None) -> None:
    with Daemon(tmp_path) as daemon:
        answer = request(daemon.port, "POST", "/shutdown", body)
        assert (answer.status, answer.body) == (
            200,
            b'{"ok":true,"message":"stringd shutting down"}',
        )
        assert daemon.process is not None
        assert daemon.process.wait(WAIT_SECONDS) == 0


@proves("HEALTH-04")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_closes_the_daemon_with_exit_code_0(tmp_path: Path, number: int) -> None:
    daemon = Daemon(tmp_path)
    daemon.start()
    with Wire(daemon.port) as idle:
        idle.send(message("GET", "/users")).receive()
        assert daemon.stop(number) == 0
        assert idle.rest() == b""
    assert daemon.output == [f"stringd listening on http://127.0.0.1:{daemon.port}\n"]


@proves("HEALTH-04")
def test_a_running_command_may_finish_before_the_daemon_ends(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "default", tmp_path / "home")
        with Blocked(user) as blocked:
            assert daemon.process is not None
            daemon.process.send_signal(signal.SIGTERM)
            _until_refused(daemon.port)
            assert [name for name, _ in blocked.finish()] == ["head", "content", "done"]
        assert daemon.stop() == 0


@proves("HEALTH-04")
def test_a_command_that_does_not_finish_is_ended(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "default", tmp_path / "home")
        with Blocked(user) as blocked:
            assert daemon.stop() == 0
            said = events(blocked.wire.body(blocked.headers))
    assert [name for name, _ in said] == ["head", "content", "done"]
    assert (said[0][1]["ok"], said[0][1]["code"]) == (False, "EXIT_1")
    assert said[1][1].endswith("(no output)\n[killed by SIGHUP]")


@proves("HEALTH-04")
def test_what_still_waits_when_the_daemon_ends_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "default", tmp_path / "home")
        with Blocked(user), Wire(daemon.port) as waiting:
            waiting.send(user.message(f"/exec touch {mark}"))
            while user.sessions()["file:main"]["queue_length"] != 1:
                pass
            assert daemon.stop() == 0
    assert not mark.exists()


def _until_refused(port: int) -> None:
    """Return when nobody takes connections any more; the test's own limit bounds it."""
    while True:
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) != 0:
                return


@proves("HEALTH-05")
def test_a_port_in_use_is_said_in_one_line(daemon: Daemon, tmp_path: Path) -> None:
    done = _serve({**daemon.child_environment(), "STRINGD_DATA_DIR": str(tmp_path / "other")})
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == (
        f"stringd: cannot listen on 127.0.0.1:{daemon.port}: Address already in use. "
        "Stop what runs there, or choose another port with STRINGD_PORT.\n"
    )
    assert not (tmp_path / "other").exists()
    assert request(daemon.port, "GET", "/health").status == 200


@proves("HEALTH-06", "TRUST-02")
@pytest.mark.parametrize("value", ["0", "abc"])
def test_an_unusable_port_is_said_in_one_line(daemon: Daemon, value: str) -> None:
    for arguments, environment, name in (
        ((), {"STRINGD_PORT": value}, "STRINGD_PORT"),
        ((f"--port={value}",), {}, "--port"),
    ):
        done = _serve({**daemon.child_environment(), **environment}, *arguments)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == (
            f"stringd: {name} must be a port between 1 and 65535, not '{value}'\n"
        )


@proves("TRUST-02", "HTTP-01")
@pytest.mark.parametrize("blank", ["", "  "])
def test_the_port_is_3100_unless_told_otherwise(blank: str) -> None:
    assert DEFAULT_PORT == 3100
    assert load_settings({}).port == 3100
    assert load_settings({"STRINGD_PORT": blank}).port == 3100
    assert load_settings({"STRINGD_PORT": "3200"}).port == 3200


@proves("HEALTH-08")
def test_the_log_has_a_line_for_each_event(tmp_path: Path) -> None:
    with Daemon(tmp_path, "--log") as daemon:
        user = User(daemon.port, "default", tmp_path / "home")
        user.exec("/info secret words")
        user.post(cmd="")
        request(daemon.port, "DELETE", "/sessions/default/file:main")
        request(daemon.port, "DELETE", "/users/default")
    text = (tmp_path / "data" / "logs" / "stringd.log").read_text(encoding="utf-8")
    lines = [line.partition("] ")[2] for line in text.splitlines()]
    assert lines[0] == f"INFO  server.start port={daemon.port}"
    assert "INFO  request method=POST path=/exec userId=default" in lines
    assert f"INFO  user.register userId=default home={tmp_path / 'home'}" in lines
    executed = next(line for line in lines if line.startswith("INFO  exec "))
    assert executed.startswith("INFO  exec userId=default topic=file:main cmd=/info ok=")
    assert any(line.startswith("INFO  exec.validation status=400 error=") for line in lines)
    assert "INFO  session.delete userId=default topic=file:main" in lines
    assert "INFO  user.delete userId=default deleted=true" in lines
    assert lines[-1] == f"INFO  server.stop port={daemon.port}"
    assert "secret" not in text


@proves("HEALTH-08")
def test_without_being_asked_nothing_is_logged(daemon: Daemon) -> None:
    assert not (daemon.data_dir / "logs").exists()


@proves("HTTP-01", "HEALTH-02")
def test_runs_may_have_a_second_port(tmp_path: Path) -> None:
    second = free_port()
    with Daemon(tmp_path, "--runs-port", str(second)) as daemon:
        for port in (daemon.port, second):
            assert json.loads(request(port, "GET", "/health").body)["status"] == "ok"


def _serve(environment: dict[str, str], *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "stringd", "serve", *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
