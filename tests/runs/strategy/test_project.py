"""Projects bring code of their own, when their manifest says so."""

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from stringd.system.trust import TrustError
from tests.runs.support import RunsServer, Watcher, sequential, strategy

pytestmark = pytest.mark.anyio

CODE = """
async def shout(message, config):
    return message.upper()

async def polite(call, text):
    return f"please {text}"

def register(registry):
    registry.agent("shout", shout)
    registry.hooks.alter_call_message.append(polite)
"""


def project(folder: Path, code: str = CODE, **extra: Any) -> Path:
    (folder / "entry.py").write_text(code, "utf-8")
    manifest = folder / "stringd-project.json"
    body = {"name": "@me/loud", "version": "1.0.0", "entry": "entry.py", **extra}
    manifest.write_text(json.dumps(body), "utf-8")
    return manifest


async def test_an_entry_module_registers_agents_and_hooks_for_its_run_alone(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    path = str(server.strategy(strategy(sequential("a"), a={"type": "shout"})))
    manifest = str(project(tmp_path, permissions={"executesCode": True}))
    server.trust(Path(manifest))
    without = await watcher.ask("prepare_run", runId="x", strategyPath=path)
    assert 'unknown agent type "shout"' in without["message"]
    await watcher.ask("prepare_run", runId="r", strategyPath=path, manifestPath=manifest)
    await watcher.send("start_run", runId="r", input="hello")
    assert (await watcher.ended())["result"] == "PLEASE HELLO"
    again = await watcher.ask("prepare_run", runId="r")
    assert again["type"] == "run_prepared"
    assert server.timeline("r")[0]["manifestPath"] == manifest


@pytest.mark.parametrize(
    ("code", "permissions", "told"),
    [
        (CODE, {}, "set permissions.executesCode to true"),
        ("raise RuntimeError('oops')", {"executesCode": True}, "failed to load: oops"),
    ],
)
async def test_code_that_may_not_run_or_breaks_fails_the_preparation(
    server: RunsServer,
    watcher: Watcher,
    tmp_path: Path,
    code: str,
    permissions: dict[str, bool],
    told: str,
) -> None:
    path = str(server.strategy(strategy(sequential("a"), a={"type": "shout"})))
    manifest = str(project(tmp_path, code, permissions=permissions))
    with suppress(TrustError):
        server.trust(Path(manifest))
    answer = await watcher.ask("prepare_run", runId="r", strategyPath=path, manifestPath=manifest)
    assert answer["code"] == "PREPARE_FAILED"
    assert told in answer["message"]
    assert (await watcher.ask("list_strategies"))["runs"] == []
