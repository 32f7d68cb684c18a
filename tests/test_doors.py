"""Dangers have one door each. What import-linter cannot see, a look at the syntax does."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

SOURCE: Final = Path(__file__).parents[1] / "src" / "stringd"

# Rooms that may do it themselves, and why.
PROCESSES: Final = {
    "system": "the door",
    "gate": "auditable alone, so it has its own",
    "client": "starts the daemon, from `string`, which must start fast",
}
RESOLVERS: Final = {"net": "the door", "client": "loopback only", "gate": "no network at all"}
FORKS: Final = frozenset(
    f"{module}.{name}"
    for module, names in {
        "asyncio": ("create_subprocess_exec", "create_subprocess_shell"),
        "os": ("fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "startfile"),
        "pty": ("fork", "spawn"),
        "multiprocessing": ("Process", "Pool"),
    }.items()
    for name in names
) | {f"os.{kind}{way}" for kind in ("exec", "spawn") for way in ("v", "ve", "vp", "vpe", "l", "le")}


def rooms(but: dict[str, str]) -> Iterator[Path]:
    for path in sorted(SOURCE.rglob("*.py")):
        if path.relative_to(SOURCE).parts[0] not in but:
            yield path


def calls(path: Path) -> Iterator[tuple[str, int]]:
    """Every dotted name a module uses, with its line; names imported from a module count too."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            yield ast.unparse(node), node.lineno
        elif isinstance(node, ast.ImportFrom) and node.module:
            for name in node.names:
                yield f"{node.module}.{name.name}", node.lineno


def offenders(names: frozenset[str], but: dict[str, str]) -> list[str]:
    return [
        f"{path.relative_to(SOURCE)}:{line} {name}"
        for path in rooms(but)
        for name, line in calls(path)
        if name in names or name.rpartition(".")[2] in names
    ]


def test_only_the_floor_starts_processes() -> None:
    assert offenders(FORKS, PROCESSES) == []


def test_only_the_network_room_resolves_names() -> None:
    assert offenders(frozenset(("getaddrinfo", "gethostbyname")), RESOLVERS) == []


def test_only_the_network_room_asks_the_web() -> None:
    askers = ("urlopen", "urlretrieve", "build_opener", "HTTPConnection", "HTTPSConnection")
    assert offenders(frozenset(askers), RESOLVERS) == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import os\nos.fork()", "os.fork"),
        ("from asyncio import create_subprocess_exec as run", "asyncio.create_subprocess_exec"),
        ("loop.getaddrinfo('x', 1)", "loop.getaddrinfo"),
        ("from urllib.request import urlopen", "urllib.request.urlopen"),
    ],
)
def test_the_look_finds_what_it_looks_for(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / "x.py").write_text(text, "utf-8")
    assert found in [name for name, _ in calls(tmp_path / "x.py")]


def test_no_two_classes_have_the_same_name() -> None:
    homes: dict[str, list[str]] = {}
    for path in sorted(SOURCE.rglob("*.py")):
        for node in ast.parse(path.read_text("utf-8")).body:
            if isinstance(node, ast.ClassDef):
                homes.setdefault(node.name, []).append(str(path.relative_to(SOURCE)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}
