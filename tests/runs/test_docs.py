"""The manual names every message, every error code and every key."""

import re
from pathlib import Path
from typing import get_args

import pytest

from stringd.runs.agents.hooks import Hooks
from stringd.runs.strategy.schema import MATCH_MODES
from stringd.wire.runs.messages import DaemonMessage
from stringd.wire.runs.requests import ClientMessage

ROOT = Path(__file__).parents[2]
RUNS = (ROOT / "docs" / "runs.md").read_text("utf-8")
STRATEGIES = (ROOT / "docs" / "strategies.md").read_text("utf-8")
TAGS = [
    str(kind.__struct_config__.tag) for kind in (*get_args(ClientMessage), *get_args(DaemonMessage))
]


@pytest.mark.parametrize("tag", TAGS)
def test_every_message_has_its_heading(tag: str) -> None:
    assert f"\n#### {tag}\n" in RUNS


def test_every_error_code_in_the_code_is_in_the_manual() -> None:
    sources = [
        *(ROOT / "src/stringd/runs").rglob("*.py"),
        *(ROOT / "src/stringd/wire/runs").rglob("*.py"),
    ]
    text = "\n".join(path.read_text("utf-8") for path in sources)
    raised = r'(?:\bcode ?= ?|Error\(\s*)"([A-Z]+(?:_[A-Z]+)+)"'
    codes = set(re.findall(raised, text)) | {"CANCELLED", "INTERRUPTED"}
    assert {code for code in codes if f"| `{code}` |" not in RUNS} == set()


@pytest.mark.parametrize("mode", MATCH_MODES)
def test_every_match_mode_is_explained(mode: str) -> None:
    assert f"| `{mode}` |" in STRATEGIES


@pytest.mark.parametrize("name", [n for n in Hooks.__dataclass_fields__ if "_first_" not in n])
def test_every_hook_is_named(name: str) -> None:
    assert f"`{name}`" in STRATEGIES


def test_the_example_in_the_manual_is_a_valid_strategy(tmp_path: Path) -> None:
    from stringd.runs.strategy.load import KnownNames, load_strategy

    text = STRATEGIES.partition("```yaml\n")[2].partition("```")[0]
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "writer.md").write_text("write", "utf-8")
    path = tmp_path / "example.yaml"
    path.write_text(text, "utf-8")
    assert load_strategy(path, KnownNames()).name == "Draft and judge"
