"""Bash topics and `/exec` behind walls, as a topic asks for them or the owner wants them."""

from collections.abc import Iterator

import pytest

from stringd.system.sandbox import Nothing, available
from tests.support.daemon import Daemon
from tests.support.person import Person

pytestmark = pytest.mark.skipif(isinstance(available(), Nothing), reason="no walls on this machine")
STATUS = "grep Seccomp: /proc/self/status"
TOPIC = "bash:dev"


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("shells")) as running:
        yield running


@pytest.fixture(scope="module")
def owner(daemon: Daemon) -> Person:
    owner = Person(daemon.port, "owner", daemon.directory / "user")
    owner.put("notes.md", "# Notes\n")
    return owner


def test_a_topic_asks_for_walls_and_gives_them_up(owner: Person) -> None:
    assert owner.gets(STATUS, TOPIC).split()[-1] == "0"
    assert "sandbox" not in owner.gets("//info", TOPIC)
    assert owner.gets("//sandbox", TOPIC) == "sandbox: open"
    said = owner.gets("//sandbox workspace", TOPIC)
    assert said.startswith("sandbox: workspace.")
    assert "The shell that ran was ended." in said
    assert "Seccomp:\t2" in owner.gets(STATUS, TOPIC)
    assert "sandbox:   workspace" in owner.gets("//info", TOPIC)
    assert owner.gets(STATUS, "bash:other").split()[-1] == "0"
    owner.gets("//sandbox open", TOPIC)
    assert "Seccomp:\t0" in owner.gets(STATUS, TOPIC)
    refused = owner.fails("//sandbox wide", TOPIC)
    assert refused.message == "Usage: //sandbox read-only | workspace | open"


def test_a_topic_keeps_its_walls_over_a_restart(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base = tmp_path_factory.mktemp("restarted")
    with Daemon(base) as daemon:
        person = Person(daemon.port, "person", base / "user")
        person.gets("//sandbox read-only", TOPIC)
        assert "Seccomp:\t2" in person.gets(STATUS, TOPIC)
        daemon.stop()
        daemon.start()
        assert "sandbox:   read-only" in person.gets("//info", TOPIC)
        assert "Seccomp:\t2" in person.gets(STATUS, TOPIC)


def test_no_topic_is_wider_than_the_owner_lets_shells_be(
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    base = tmp_path_factory.mktemp("narrow")
    with Daemon(base, STRINGD_BASH_SANDBOX="workspace") as daemon:
        person = Person(daemon.port, "person", base / "user")
        person.put("notes.md", "# Notes\n")
        assert person.gets(STATUS, TOPIC).split()[-1] == "2"
        refused = person.fails("//sandbox open", TOPIC)
        assert refused.code == "FILE_NOT_ALLOWED"
        assert "STRINGD_BASH_SANDBOX=open" in refused.text
        assert person.gets(STATUS, TOPIC).split()[-1] == "2"
        assert person.gets(f"/exec {STATUS}").split()[-1] == "2"
        person.gets('/set {_sandbox} = "open"')
        person.gets("//sandbox read-only", TOPIC)
        assert person.fails("touch here", TOPIC).code == "EXIT_1"
