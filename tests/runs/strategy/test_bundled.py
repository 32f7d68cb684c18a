"""What ships with stringd runs without a model, and explains itself."""

import pytest

from stringd.runs.strategy.files import BUNDLED
from stringd.runs.strategy.source import read_source
from tests.runs.support import TERMINAL, RunsServer, Watcher

pytestmark = pytest.mark.anyio

NAMES = sorted(path.name for path in BUNDLED.iterdir() if path.is_dir())


def test_there_is_one_for_each_usual_job() -> None:
    assert NAMES == ["build", "plan", "refactor", "research", "review", "triage"]


@pytest.mark.parametrize("name", NAMES)
async def test_it_runs_on_demo_without_an_unused_agent(
    server: RunsServer, watcher: Watcher, name: str
) -> None:
    path = str(BUNDLED / name / f"{name}.yaml")
    await watcher.ask("prepare_run", runId="r", strategyPath=path)
    await watcher.send("start_run", runId="r", input="make it faster")
    seen = await watcher.until("request_question", *TERMINAL)
    while seen[-1]["type"] == "request_question":
        asked = seen[-1]["requestId"]
        await watcher.send("question_response", runId="r", questionRequestId=asked, response="yes")
        seen += await watcher.until("request_question", *TERMINAL)
    assert seen[-1]["type"] == "strategy_completed", seen[-1]
    assert f"stringd run {name} --model" in seen[-1]["result"]
    spoke = {each["agentName"] for each in seen if each["type"] == "agent_output"}
    source = read_source(BUNDLED / name / f"{name}.yaml").value
    assert spoke == {key for key, agent in source["agents"].items() if "model" in agent}
    results = [
        each["event"]["output"]
        for each in seen
        if each["type"] == "agent_streaming" and each["event"]["type"] == "tool-result"
    ]
    assert not [each for each in results if "Invalid arguments" in each]


@pytest.mark.parametrize("name", NAMES)
def test_it_has_a_readme_with_a_command_to_copy(name: str) -> None:
    readme = (BUNDLED / name / "README.md").read_text("utf-8")
    assert readme.startswith(f"# {name}\n")
    assert f"stringd run {name} --model" in readme
    agents = read_source(BUNDLED / name / f"{name}.yaml").value["agents"]
    for agent in (key for key, each in agents.items() if "model" in each):
        assert f"**{agent}**" in readme
