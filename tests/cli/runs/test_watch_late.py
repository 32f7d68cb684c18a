"""Whoever comes late to a run sees what those see who were there from its beginning."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.runs.test_run import Terminal, stringd, write
from tests.runs.support import scripted, sequential, strategy
from tests.support.daemon import Daemon


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("late")) as running:
        yield running


def drafts(daemon: Daemon) -> str:
    source = strategy(sequential("a"), a=scripted({"thinking": "hm", "chunks": ["the ", "draft"]}))
    source["flow"]["steps"].append({"approve": "Good?", "name": "check"})
    return write(daemon, "drafts.yaml", source)


def broadcasts(output: str) -> list[Any]:
    return [each for each in map(json.loads, output.splitlines()) if "seq" in each]


def test_a_run_that_is_over_is_watched_as_it_was(daemon: Daemon) -> None:
    path = drafts(daemon)
    early = stringd(daemon, "run", path, "--run-id", "over", "--json", text="yes\n")
    late = stringd(daemon, "runs", "watch", "over", "--json")
    assert (early.returncode, late.returncode, late.stderr) == (0, 0, "")
    assert broadcasts(late.stdout) == broadcasts(early.stdout)
    assert [each["seq"] for each in broadcasts(late.stdout)][:3] == [1, 2, 3]
    again = stringd(daemon, "runs", "continue", "over", "-i", "more", text="yes\n")
    assert again.returncode == 0, again.stderr


@pytest.mark.parametrize("command", ["resume", "watch"])
def test_a_draft_is_shown_to_whoever_is_asked_about_it(daemon: Daemon, command: str) -> None:
    early = Terminal(daemon, "run", drafts(daemon), "--run-id", f"asks-{command}", "--plain")
    early.until("check asks: Good?")
    late = Terminal(daemon, "runs", command, f"asks-{command}", "--plain")
    for told in ("> a", "a: the draft", "< a", "check asks: Good?"):
        late.until(told)
    late.type("yes\n")
    assert (late.ended(), early.ended()) == (0, 0)


def test_the_ends_of_earlier_segments_do_not_end_the_view(daemon: Daemon) -> None:
    early = Terminal(daemon, "run", drafts(daemon), "--run-id", "twice", "--plain")
    early.until("check asks: Good?")
    assert stringd(daemon, "runs", "stop", "twice").returncode == 0
    assert early.ended() == 3
    resumed = Terminal(daemon, "runs", "resume", "twice", "--plain")
    resumed.until("check asks: Good?")
    late = Terminal(daemon, "runs", "watch", "twice", "--plain")
    for told in ("a: the draft", "CANCELLED", "> check", "check asks: Good?"):
        late.until(told)
    resumed.type("yes\n")
    assert (resumed.ended(), late.ended()) == (0, 0)
