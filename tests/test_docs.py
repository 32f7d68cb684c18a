"""The manual is complete: what the code offers has a heading or a row of a table in docs/."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from stringd.cli.main import SUBCOMMANDS
from stringd.runtime.commands.table import COMMANDS
from stringd.server.settings import VARIABLES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
ROOMS = ("runtime", "actions", "documents", "server/exec.py", "client/exec.py")
_CODE = re.compile(r"(?:[A-Z]+_)+[A-Z]+|CONFLICT")


@cache
def manual() -> list[str]:
    """Headings and table rows of every page."""
    lines = [
        line for page in sorted(DOCS.glob("*.md")) for line in page.read_text("utf-8").splitlines()
    ]
    return [line for line in lines if line.startswith(("#", "|"))]


def mentioned(pattern: str) -> bool:
    return any(re.search(pattern, line) for line in manual())


@pytest.mark.parametrize("name", VARIABLES)
def test_every_setting_is_in_the_manual(name: str) -> None:
    assert mentioned(rf"`{name}`")


@pytest.mark.parametrize("name", SUBCOMMANDS)
def test_every_subcommand_is_in_the_manual(name: str) -> None:
    assert mentioned(rf"\bstringd {name}\b")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_string_command_is_in_the_manual(name: str) -> None:
    assert mentioned(rf"`/{name}\b")


def error_codes() -> set[str]:
    """The codes that errors are raised and answered with."""
    found: set[str] = set()
    for room in ROOMS:
        path = ROOT / "src" / "stringd" / room
        for file in [path] if path.is_file() else path.rglob("*.py"):
            tree = ast.parse(file.read_text("utf-8"))
            found.update(code for node in ast.walk(tree) if (code := _code(node)))
    assert {"NOT_FOUND", "QUEUE_FULL", "STREAM_INCOMPLETE"} <= found
    return found


def _code(node: ast.AST) -> str | None:
    """The code in `CommandError("CODE", …)`, `Result.error("CODE", …)` and `code = "CODE"`."""
    value: ast.expr | None = None
    if isinstance(node, ast.Call):
        texts = [each for each in node.args if isinstance(each, ast.Constant)]
        name = str(getattr(node.func, "id", "") or getattr(node.func, "attr", ""))
        if name == "error" or name.endswith(("Error", "Reply")):
            value = next((each for each in texts if _CODE.fullmatch(str(each.value))), None)
    elif isinstance(node, ast.Assign | ast.AnnAssign):
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]
        if any(getattr(target, "id", "") == "code" for target in targets):
            value = node.value
    if isinstance(value, ast.Constant) and _CODE.fullmatch(str(value.value)):
        return str(value.value)
    return None


@pytest.mark.parametrize("code", sorted(error_codes()))
def test_every_error_code_is_in_the_manual(code: str) -> None:
    text = "\n".join(page.read_text("utf-8") for page in DOCS.glob("*.md"))
    assert f"`{code}`" in text


def test_links_between_pages_lead_somewhere() -> None:
    for page in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *DOCS.glob("*.md")]:
        prose = re.sub(r"(?ms)^(`{3,}).*?^\1|`+[^`\n]+`+", "", page.read_text("utf-8"))
        for target in re.findall(r"\]\(([^)#\s:]+\.md)(?:#[^)]*)?\)", prose):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


@pytest.mark.parametrize("page", ["security.md", "reviewing.md", "architecture.md"])
def test_every_test_and_module_a_page_names_exists(page: str) -> None:
    """A promise that names a test which is gone would be a promise nobody keeps."""
    text = (DOCS / page).read_text("utf-8")
    tests = re.findall(r"`(tests/[\w/.]+)`", text)
    modules = re.findall(r"`((?:system|net|wire|runtime|runs|gate|server|actions)/[\w/.]+)`", text)
    lost = [each for each in tests if not (ROOT / each).exists()]
    lost += [each for each in modules if not (ROOT / "src" / "stringd" / each).exists()]
    assert lost == []
