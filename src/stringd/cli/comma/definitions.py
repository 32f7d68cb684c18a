"""Strategies, skills, packages and MCP servers of Comma, which become the owner's own here."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from stringd.cli.comma.copies import copy_folder
from stringd.cli.comma.items import ImportItem, ImportPlan
from stringd.runs import check_strategy, definitions_problem
from stringd.runs.errors import PackageError, RunServiceError
from stringd.runs.strategy.discover import discover
from stringd.runs.strategy.files import StrategyFiles
from stringd.runs.strategy.package_sources import PathSource, read_path
from stringd.runs.strategy.packages import StrategyPackages
from stringd.runs.strategy.source import read_source
from stringd.system.files import write_atomically


def import_strategies(plan: ImportPlan) -> Iterator[ImportItem]:
    """The files, with what would keep a strategy among them from running."""
    problems = _problems(plan.source)
    for item in copy_folder(plan, "strategies"):
        problem = problems.get(item.name, "")
        if problem and item.outcome in ("imported", "present"):
            note = f"it cannot be run as it is: {problem}"
            yield item._replace(note=f"{item.note}; {note}" if item.note else note)
        else:
            yield item


def _problems(source: Path) -> Mapping[str, str]:
    """Why strategies cannot be run, by the name of their file. Their code is not executed."""
    root = source / "strategies"
    if not root.is_dir():
        return {}
    found = discover(source, source, StrategyFiles(source))
    # That nobody trusts it yet is no problem: importing says that it is the owner's.
    problems = {str(each.path): each.reason for each in found.warnings if each.trust is None}
    for each in found.strategies:
        if each.origin == "data":
            try:
                check_strategy(each.path, data_dir=source)
            except RunServiceError as error:
                problems[str(each.path)] = str(error)
    return {
        Path(path).relative_to(root).as_posix(): " ".join(problem.split())
        for path, problem in problems.items()
        if Path(path).is_relative_to(root)
    }


def import_skills(plan: ImportPlan) -> Iterator[ImportItem]:
    """Every file of every skill."""
    return copy_folder(plan, "skills")


def import_packages(plan: ImportPlan) -> Iterator[ImportItem]:
    """Installed packages of strategies, installed here from where Comma keeps them."""
    known = frozenset(each.name for each in StrategyPackages(plan.data).installed())
    with TemporaryDirectory(prefix="stringd-import-") as tried:
        packages = StrategyPackages(Path(tried) if plan.dry else plan.data)
        yield from _installed(plan, packages, known)


def _installed(
    plan: ImportPlan, packages: StrategyPackages, known: frozenset[str]
) -> Iterator[ImportItem]:
    for folder in sorted((plan.source / "packages").glob("@*/*/")):
        name = f"{folder.parent.name}/{folder.name}"
        if name in known:
            yield ImportItem("packages", name, "present")
            continue
        try:
            packages.install(read_path(PathSource(folder)), allow_code=False)
            yield ImportItem("packages", name, "imported")
        except PackageError as error:
            yield ImportItem("packages", name, "refused", " ".join(str(error).split()))


def import_servers(plan: ImportPlan) -> Iterator[ImportItem]:
    """The MCP servers that Comma's `mcp.json` defines, added to the one here."""
    file, ours = plan.source / "mcp.json", plan.data / "mcp.json"
    if not file.is_file():
        return
    for path in (file, ours):
        problem = definitions_problem(path) if path.is_file() else None
        if problem:
            yield ImportItem("servers", "mcp.json", "refused", " ".join(problem.split()))
            return
    theirs = _servers(file)
    here = _servers(ours) if ours.is_file() else {}
    added: dict[str, Any] = {}
    for name, raw in theirs.items():
        server = _from_anywhere(raw, plan.source)
        if here.get(name) == server:
            yield ImportItem("servers", name, "present")
        elif name in here and not plan.replace:
            yield ImportItem(
                "servers", name, "kept", f"{ours} has another; --replace takes Comma's"
            )
        else:
            added[name] = server
            yield ImportItem("servers", name, "imported")
    if added and not plan.dry:
        text = json.dumps({"mcpServers": here | added}, indent=2, ensure_ascii=False)
        write_atomically(ours, f"{text}\n".encode(), 0o600)


def _servers(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = read_source(path, "MCP configuration").value["mcpServers"]
    return found


def _from_anywhere(raw: Mapping[str, Any], folder: Path) -> dict[str, Any]:
    """A definition that means the same in another file: its directory is relative to the file."""
    cwd = raw.get("cwd")
    return {**raw, "cwd": str((folder / cwd).resolve())} if isinstance(cwd, str) else dict(raw)
