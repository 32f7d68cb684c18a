"""Every transcript plays as written."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.daemon import Daemon
from tests.support.transcripts import TRANSCRIPTS, Player, play


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    with Daemon(tmp_path_factory.mktemp("transcripts")) as running:
        yield running


@pytest.mark.parametrize("path", sorted(TRANSCRIPTS.glob("*.md")), ids=lambda path: path.stem)
def test_the_daemon_answers_as_the_transcript_says(daemon: Daemon, path: Path) -> None:
    for fence, answer in play(Player(daemon, path.stem), path.read_text(encoding="utf-8")):
        assert answer == fence.text
