"""What new users ran into, by the number of the finding."""

from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.person import Person

_numbers = count(1)


@pytest.fixture(scope="module")
def newcomers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Shell commands have a second."""
    directory = tmp_path_factory.mktemp("newcomers")
    with Daemon(directory, STRINGD_BASH_TIMEOUT_MS="1000", STRINGD_BASH_QUIET_MS="500") as running:
        yield running


@pytest.fixture
def person(newcomers: Daemon, tmp_path: Path) -> Person:
    return Person(newcomers.port, f"newcomer-{next(_numbers)}", tmp_path / "home")


def test_2_the_end_of_a_command_names_the_remedy(person: Person) -> None:
    said = person.fails("while :; do echo line; sleep 0.1; done", "bash:b")
    assert said.code == "EXIT_124"
    assert "Give it more time with //timeout 20m <command>" in said.text


def test_2_a_topic_or_one_command_has_a_longer_limit(person: Person) -> None:
    slow = "for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.2; done"
    assert "\n7" in person.gets(f"//timeout 1m {slow}", "bash:b")
    assert "\n7" in person.gets(f"//timeout 1m\n{slow}", "bash:b")
    assert person.gets("//timeout", "bash:b") == "timeout: 1s"
    assert person.gets("//timeout 1h30m", "bash:b") == "timeout: 1h30m for commands of this topic."
    assert "\n7" in person.gets(slow, "bash:b")
    assert person.gets("//timeout", "bash:b") == "timeout: 1h30m"
    assert "Write a time as 90s" in person.fails("//timeout soon", "bash:b").text


def test_2_a_running_command_is_given_more_time(person: Person) -> None:
    assert "It is ended in" in person.gets("//timeout 1m sleep 1000", "bash:b")
    assert person.gets("//timeout 20m", "bash:b").endswith("the one that runs too, from now on.")
    left = person.gets("//wait 0.1", "bash:b").partition("It is ended in ")[2].partition(" s ")[0]
    assert 1000 < int(left) <= 1200
    person.gets("//close", "bash:b")
