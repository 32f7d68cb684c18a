"""Permissions of runs that are asked at the gate too: the first answer counts, wherever it comes
from, and only a person's."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO

import pytest

from stringd.gate.decide import Event, KeyAnswer
from stringd.server.gate_answers import permission_text
from stringd.system.peers import kernel_can_say
from stringd.wire.runs.messages import RequestPermission
from tests.gate.support import QUESTION, Human, running_gate, serving
from tests.runs.support import Json, scripted, watching
from tests.server.test_children import AS_A_CHILD, READING, asking, strategy_file
from tests.support.daemon import Daemon

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not kernel_can_say(), reason="this kernel has no sock_diag"),
]

AGENT = {**scripted(READING, "fine"), "tools": ["read_file"]}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Daemon, Path]]:
    """A daemon, and the folder in which it looks for its gate."""
    folder = tmp_path_factory.mktemp("g")
    where = tmp_path_factory.mktemp("served")
    with Daemon(where, STRINGD_GATE_SOCKET=str(folder / "gate.sock")) as running:
        yield running, folder


@pytest.fixture
def where() -> Iterator[None]:
    """A gate in this process moves it to `/`, which is not pytest's place."""
    before, umask = Path.cwd(), os.umask(0o077)
    os.umask(umask)
    yield
    os.chdir(before)
    os.umask(umask)


def decision(daemon: Daemon, run_id: str) -> Json:
    """What the timeline says about the one decision of a run."""
    lines = (daemon.data_dir / "runs" / f"{run_id}.jsonl").read_text("utf-8").splitlines()
    [found] = [each for each in map(json.loads, lines) if each["type"] == "permission_decision"]
    said: Json = found
    return said


@pytest.mark.parametrize(
    ("event", "word"), [(Event.YES, "allow"), (Event.NO, "deny")], ids=["yes", "no"]
)
@pytest.mark.usefixtures("where")
async def test_a_key_at_the_gate_answers_a_run(
    place: tuple[Daemon, Path], tmp_path: Path, event: Event, word: str
) -> None:
    daemon, folder = place
    human = Human(lambda _: KeyAnswer(event, by="terminal", note="" if word == "allow" else "why"))
    run_id = f"run-{tmp_path.name}"
    with serving(folder, human):
        async with watching(daemon.port) as owner:
            prepare = strategy_file(tmp_path, AGENT)
            await owner.ask("prepare_run", runId=run_id, **prepare)
            await owner.send("start_run", runId=run_id)
            assert (await owner.ended())["type"] == "strategy_completed"
    [question] = human.asked
    assert question.request.tool == "read_file"
    assert "secret.txt" in question.request.text
    assert run_id in question.request.client
    assert question.request.directory == prepare["cwd"]
    said = decision(daemon, run_id)
    assert said["decision"] == word
    assert said["decidedBy"]["program"] == "stringd gate"
    assert said["decidedBy"]["pid"] == os.getpid()
    assert (said.get("reason") or "") == ("" if word == "allow" else "why")


async def test_an_answer_elsewhere_takes_the_question_from_the_gate_and_says_whose_it_was(
    place: tuple[Daemon, Path], tmp_path: Path
) -> None:
    daemon, folder = place
    run_id = f"run-{tmp_path.name}"
    with running_gate(folder) as gate:
        async with asking(daemon.port, strategy_file(tmp_path, AGENT), run_id) as (owner, asked):
            gate.terminal.wait_for(QUESTION)
            await owner.send(
                "permission_decision", runId=run_id, permissionRequestId=asked, decision="deny"
            )
            assert (await owner.ended())["type"] == "strategy_completed"
        gate.terminal.wait_for("Answered elsewhere: deny by human, ")
    assert decision(daemon, run_id)["decision"] == "deny"


@pytest.fixture
def pretender(place: tuple[Daemon, Path]) -> Iterator[IO[str]]:
    """Something with the mark of what a daemon started, at the gate's socket; what it says."""
    path = place[1] / "gate.sock"
    pretend = (
        "import socket, sys; s = socket.socket(socket.AF_UNIX); s.bind(sys.argv[1]); s.listen(); "
        "print('listening', flush=True); c = s.accept()[0]; print('asked', len(c.recv(9)))"
    )
    words = [*AS_A_CHILD, sys.executable, "-c", pretend, str(path)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "listening\n"
        yield child.stdout
        child.kill()
    path.unlink()


async def test_what_a_daemon_started_is_not_taken_for_a_gate(
    place: tuple[Daemon, Path], pretender: IO[str], tmp_path: Path
) -> None:
    run_id = f"run-{tmp_path.name}"
    prepare = strategy_file(tmp_path, AGENT)
    async with asking(place[0].port, prepare, run_id) as (owner, asked):
        # The daemon looked who listens, and hung up without a word.
        assert pretender.readline() == "asked 0\n"
        await owner.send(
            "permission_decision", runId=run_id, permissionRequestId=asked, decision="deny"
        )
        await owner.ended()


def test_the_question_has_everything_the_answer_depends_on() -> None:
    details = {"command": "rm x", "env": {"A": "b\x1b"}, "why": ["writes"], "editable": True}
    prompt = RequestPermission(
        run_id="r",
        ts="",
        seq=1,
        request_id="1",
        agent_name="a",
        operation="fs.exec",
        resource="rm x",
        details=details,
    )
    assert permission_text(prompt) == 'run rm x\n# env: {"A": "b\\u001b"}\n# why: ["writes"]'
