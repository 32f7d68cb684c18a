"""`GET /doctor` of the real daemon."""

from tests.support.daemon import Daemon
from tests.support.http import request


def test_it_says_what_doctor_finds_about_this_daemon_and_nothing_about_keys(
    daemon: Daemon,
) -> None:
    answer = request(daemon.port, "GET", "/doctor")
    assert answer.status == 200
    checks = {each["name"]: each for each in answer.json["checks"]}
    assert checks["bash"]["state"] == "ok"
    assert str(daemon.port) in checks["daemon"]["detail"]
    assert str(daemon.data_dir) in checks["data directory"]["detail"]
    assert not [name for name in checks if name.startswith("models ")]
    states = {each["state"] for each in answer.json["checks"]}
    assert answer.json["ok"] == ("broken" not in states)
