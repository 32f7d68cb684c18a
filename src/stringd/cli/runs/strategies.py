"""`stringd strategies`: what can be run here, and what is wrong with a file."""

import argparse
import json
from collections.abc import Sequence
from pathlib import Path

from stringd.cli.streams import visible
from stringd.client.daemon import setting
from stringd.runs import check_strategy
from stringd.runs.errors import RunServiceError
from stringd.runs.strategy.discover import discover


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd strategies`."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}", description="List strategies, or check files."
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    listing = commands.add_parser("list", help="strategies found from here (the default)")
    check = commands.add_parser("check", help="say what is wrong with strategy files")
    check.add_argument("files", nargs="+", metavar="file")
    for each in (listing, check):
        each.add_argument("--json", action="store_true", help="print JSON")
    arguments = list(argv)
    if not arguments or arguments[0] == "--json":
        arguments.insert(0, "list")
    args = parser.parse_args(arguments)
    return _check(args.files, args.json) if args.command == "check" else _list(args.json)


def data_directory() -> Path:
    """Where the daemon keeps its state: `STRINGD_DATA_DIR`, a local `.stringd`, or the home's."""
    _, given = setting("DATA_DIR")
    return Path(given) if given else Path.home() / ".string" / "daemon"


def _list(as_json: bool) -> int:
    found = discover(Path.cwd(), data_directory())
    if as_json:
        strategies = [
            {**each._asdict(), "path": str(each.path), "manifest": _text(each.manifest)}
            for each in found.strategies
        ]
        warnings = [{"path": str(each.path), "reason": each.reason} for each in found.warnings]
        print(json.dumps({"strategies": strategies, "warnings": warnings}))
        return 0
    width = max((len(each.label) for each in found.strategies), default=0)
    for each in found.strategies:
        print(visible(f"{each.label:<{width}}  {each.origin:<16}  {each.path}"))
        if each.description:
            print(visible(f"{'':<{width}}  {each.description}"))
    for warned in found.warnings:
        print(visible(f"! {warned.path}: {warned.reason}"))
    if not found.strategies:
        print("none found; put strategy files into .stringd/strategies/")
    return 0


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _check(files: Sequence[str], as_json: bool) -> int:
    results = {name: _problem(Path(name)) for name in files}
    if as_json:
        print(json.dumps([{"file": n, "ok": p is None, "problem": p} for n, p in results.items()]))
    else:
        for name, problem in results.items():
            print(visible(f"{name}: ok" if problem is None else f"{name}: {problem}"))
    return int(any(problem is not None for problem in results.values()))


def _problem(path: Path) -> str | None:
    try:
        check_strategy(path)
    except RunServiceError as error:
        return str(error)
    return None
