"""`stringd trash`: files that agents deleted, listed, put back or given up."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from stringd.cli.runs.common import add_port, ask_daemon, fail
from stringd.cli.streams import forget_typed, visible
from stringd.client.daemon import UsageError
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r
from stringd.wire.runs.catalog import TrashEntry


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd trash`."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Files that agents of runs deleted in a workspace: list them, put one back, "
        "or give them up for good.",
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    listing = commands.add_parser("list", help="what is in the trash, oldest first (the default)")
    restore = commands.add_parser("restore", help="put a file back")
    restore.add_argument("file", help="its path, or its number in the list")
    restore.add_argument("--to", metavar="PATH", help="put it there, inside the workspace")
    clear = commands.add_parser("clear", help="delete everything in it for good")
    clear.add_argument("--yes", action="store_true", help="do not ask")
    for each in (listing, restore, clear):
        each.add_argument("--cwd", metavar="DIR", help="the workspace, by default this directory")
        each.add_argument("--json", action="store_true", help="print JSON")
        add_port(each)
    arguments = list(argv)
    if not arguments or (arguments[0].startswith("-") and arguments[0] not in ("-h", "--help")):
        arguments.insert(0, "list")
    args = parser.parse_args(arguments)
    args.cwd = str(Path(args.cwd or ".").absolute())
    try:
        return _WORK[args.command](args)
    except UsageError as error:
        return fail(error)


def _entries(args: argparse.Namespace) -> list[TrashEntry]:
    answer = ask_daemon(args, r.TrashList(cwd=args.cwd))
    spaces = answer.workspaces if isinstance(answer, m.TrashListResult) else []
    return [entry for space in spaces for entry in space.entries]


def _list(args: argparse.Namespace) -> int:
    entries = _entries(args)
    if args.json:
        print(msgspec.json.encode(entries).decode())
        return 0
    if not entries:
        print(visible(f"the trash of {args.cwd} is empty"))
    for number, each in enumerate(entries, 1):
        when = each.metadata.trashed_at[:19].replace("T", " ")
        run = f"  run {each.metadata.run_id}" if each.metadata.run_id else ""
        print(visible(f"{number:>3}  {when}  {each.metadata.original_path}{run}"))
    if entries:
        print("\nto put one back: stringd trash restore <number or path>")
    return 0


def _restore(args: argparse.Namespace) -> int:
    archive = _meant(_entries(args), args.file, args.cwd)
    target = {"target_path": os.path.abspath(args.to)} if args.to else {}  # noqa: PTH100
    answer = ask_daemon(args, r.TrashRestore(cwd=args.cwd, trash_path=archive.path, **target))
    restored = answer.restored if isinstance(answer, m.TrashRestoreResult) else ""
    if args.json:
        print(msgspec.json.encode({"restored": restored, "from": archive.path}).decode())
    else:
        print(visible(f"restored {restored}"))
    return 0


def _meant(entries: Sequence[TrashEntry], wanted: str, cwd: str) -> TrashEntry:
    """By number, archive or path; of several with one path the last. Raises `UsageError`."""
    if wanted.isdecimal() and 1 <= int(wanted) <= len(entries):
        return entries[int(wanted) - 1]
    place = (Path(cwd) / wanted).resolve()
    for each in reversed(entries):
        if each.path == wanted or (Path(cwd) / each.metadata.original_path).resolve() == place:
            return each
    raise UsageError(f"{wanted} is not in the trash of {cwd}; see stringd trash")


def _clear(args: argparse.Namespace) -> int:
    if not args.yes and not _agreed(len(_entries(args)), args.cwd):
        return fail("nothing was deleted")
    answer = ask_daemon(args, r.TrashClear(cwd=args.cwd))
    assert isinstance(answer, m.TrashClearResult)
    if args.json:
        found = {"cleared": answer.cleared, "bytesFreed": answer.bytes_freed}
        print(msgspec.json.encode(found).decode())
    else:
        print(f"deleted {answer.cleared} file(s), {answer.bytes_freed} bytes")
    return 0


def _agreed(count: int, cwd: str) -> bool:
    """Raises `UsageError` where nobody can be asked."""
    if not sys.stdin.isatty():
        raise UsageError("say --yes to delete for good")
    forget_typed()
    said = input(visible(f"Delete {count} file(s) of {cwd} for good? [y/N] "))
    return said.strip().lower() in ("y", "yes")


_WORK = {"list": _list, "restore": _restore, "clear": _clear}
