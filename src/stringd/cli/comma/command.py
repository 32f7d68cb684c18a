"""`stringd import`: what another program keeps becomes stringd's."""

import argparse
import json
import os
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from stringd.cli.comma.definitions import (
    import_packages,
    import_servers,
    import_skills,
    import_strategies,
)
from stringd.cli.comma.history import import_runs
from stringd.cli.comma.items import KINDS, ImportFailedError, ImportItem, ImportPlan, Kind, Outcome
from stringd.cli.comma.keys import import_keys
from stringd.cli.streams import visible
from stringd.client.daemon import absolute, data_directory, setting
from stringd.runs.errors import RunServiceError
from stringd.server.settings import SettingsError, load_settings
from stringd.system.data_directory import ForeignDirectoryError, claim
from stringd.system.lineage import started_by_a_daemon
from stringd.system.trust import NotTheOwnerError, TrustError
from stringd.system.work_tree import repository_of

_USUAL: Final = "~/.comma"
_NAMES: Final[Mapping[Kind, str]] = {
    "strategies": "files of strategies",
    "skills": "files of skills",
    "packages": "packages",
    "servers": "MCP servers",
    "keys": "keys",
    "runs": "runs",
}
_DONE: Final[Mapping[Outcome, str]] = {
    "imported": "imported",
    "present": "here already",
    "kept": "left as they are here",
    "refused": "not imported",
}
_PLANNED: Final[Mapping[Outcome, str]] = {**_DONE, "imported": "to import"}
_PROGRESS_SECONDS: Final = 0.5


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd import`."""
    args = _parser(name).parse_args(argv)
    try:
        if started_by_a_daemon():
            raise NotTheOwnerError
        plan = _plan(args)
        items = list(_with_progress(_imported(args, plan)))
    except (
        ImportFailedError,
        TrustError,
        ForeignDirectoryError,
        RunServiceError,
        SettingsError,
    ) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename or args.folder}")
    if args.json:
        print(json.dumps({"dryRun": args.dry_run, "items": [each._asdict() for each in items]}))
    else:
        _report(plan, items)
    return 1 if any(each.outcome == "refused" for each in items) else 0


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Take over what Comma Agents keeps for you: strategies, skills, packages and "
        "MCP servers become your own here, keys are used by the next run, and runs can be shown "
        "and continued. Comma's files are only read. The daemon may run, and importing again "
        "takes what is new.",
        epilog="not imported: configuration and log of Comma's daemon, its trash and its themes. "
        ".comma folders of projects need no import: stringd reads them where they are.",
    )
    parser.add_argument("program", choices=["comma"], help="what to import from")
    parser.add_argument("folder", nargs="?", help=f"where Comma keeps its files ({_USUAL})")
    parser.add_argument(
        "--only",
        metavar="KINDS",
        type=_kinds,
        default=KINDS,
        help=f"only some of them, with commas between: {', '.join(KINDS)}",
    )
    parser.add_argument(
        "--dry-run", action="store_true", help="say what would be done, change nothing"
    )
    parser.add_argument(
        "--replace",
        action="store_true",
        help="take Comma's strategies, skills, servers and keys where they differ from those here",
    )
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="the daemon's data directory (STRINGD_DATA_DIR, else ~/.string/daemon)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _kinds(text: str) -> tuple[Kind, ...]:
    wanted = [each.strip() for each in text.split(",") if each.strip()]
    unknown = [each for each in wanted if each not in KINDS]
    if unknown or not wanted:
        raise argparse.ArgumentTypeError(f"{text!r}: choose from {', '.join(KINDS)}")
    return tuple(each for each in KINDS if each in wanted)


def _plan(args: argparse.Namespace) -> ImportPlan:
    """Raises `ImportFailedError` for a folder that is not Comma's or not the caller's."""
    source = Path(absolute(args.folder or _USUAL))
    try:
        status = source.stat()
    except FileNotFoundError:
        hint = "" if args.folder else "; if Comma keeps its files elsewhere, name that folder"
        raise ImportFailedError(f"there is no {source}{hint}") from None
    if not source.is_dir():
        raise ImportFailedError(f"{source} is not a folder")
    if status.st_uid != os.geteuid():
        raise ImportFailedError(f"{source} belongs to another account")
    clone = repository_of(source) if args.folder else None
    if clone is not None:
        raise ImportFailedError(
            f"{source} is part of the repository {clone}. What comes with a project is used where "
            f"it is, once you trust it: stringd trust {clone}"
        )
    data = Path(absolute(args.data_dir or data_directory()))
    return ImportPlan(source, data, dry=args.dry_run, replace=args.replace)


def _imported(args: argparse.Namespace, plan: ImportPlan) -> Iterator[ImportItem]:
    use_keyring = load_settings(environ=os.environ).runs.use_keyring
    if not plan.dry:
        claim(plan.data, chosen=bool(args.data_dir or setting("DATA_DIR")[1]))
    work: Mapping[Kind, Callable[[ImportPlan], Iterator[ImportItem]]] = {
        "strategies": import_strategies,
        "skills": import_skills,
        "packages": import_packages,
        "servers": import_servers,
        "keys": lambda plan: import_keys(plan, use_keyring=use_keyring),
        "runs": import_runs,
    }
    for kind in args.only:
        yield from work[kind](plan)


def _with_progress(items: Iterator[ImportItem]) -> Iterator[ImportItem]:
    """The same; somebody who waits at a terminal sees how far it is."""
    if not sys.stderr.isatty():
        yield from items
        return
    counted: Counter[Kind] = Counter()
    told = time.monotonic()
    for item in items:
        counted[item.kind] += 1
        if time.monotonic() - told > _PROGRESS_SECONDS:
            told = time.monotonic()
            print(f"\r\x1b[K{_NAMES[item.kind]}: {counted[item.kind]}", end="", file=sys.stderr)
        yield item
    print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def _report(plan: ImportPlan, items: Sequence[ImportItem]) -> None:
    said = _PLANNED if plan.dry else _DONE
    counts = Counter((each.kind, each.outcome) for each in items)
    for kind in KINDS:
        parts = [
            f"{counts[kind, outcome]} {words}"
            for outcome, words in said.items()
            if counts[kind, outcome]
        ]
        if parts:
            print(f"{_NAMES[kind] + ':':<21}{', '.join(parts)}")
    for each in items:
        if each.note:
            print(visible(f"  {each.kind}: {each.name}: {said[each.outcome]}; {each.note}"))
    if not items:
        print(visible(f"there is nothing to import in {plan.source}"))
    if not plan.dry and any(each.outcome == "imported" for each in items):
        print(visible(f"imported into {plan.data}. See: stringd strategies, stringd runs"))


def _fail(reason: str) -> int:
    print(visible(f"stringd: {reason}"), file=sys.stderr)
    return 1
