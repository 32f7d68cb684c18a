"""`stringd strategies`: what can be run here, what is wrong with a file, and packages of them."""

import argparse
import json
import shutil
import textwrap
from collections.abc import Sequence
from pathlib import Path

import msgspec

from stringd.cli.runs.common import add_port, ask_daemon, fail
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError, setting
from stringd.formats.closest import closest_first
from stringd.runs import check_strategy
from stringd.runs.errors import RunServiceError
from stringd.runs.strategy.discover import Found, discover, find_by_name
from stringd.wire.runs import messages as m
from stringd.wire.runs import requests as r

_MAX_NAMED = 12
_SOURCES = """\
A source is a folder, a zip or tgz file, the address of one, or a git repository:

  stringd strategies install ./my-strategies
  stringd strategies install https://example.org/strategies-1.2.tgz
  stringd strategies install git+https://example.org/strategies.git@v1.2#folder
  stringd strategies install gh:owner/repository

It holds a stringd-project.json with what it offers. Nothing of a package runs while it is
installed; Python code in it needs --allow-code, and later runs with everything you may do.
"""


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd strategies`."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}", description="List strategies, check files, install packages."
    )
    commands = parser.add_subparsers(dest="command", metavar="command")
    listing = commands.add_parser("list", help="strategies found from here (the default)")
    show = commands.add_parser("show", help="what a strategy is, and its README")
    show.add_argument("name", help="its name, as it is listed")
    check = commands.add_parser("check", help="say what is wrong with strategy files")
    check.add_argument("files", nargs="+", metavar="file")
    check.add_argument("--manifest", help="the project they belong to; its code must be trusted")
    packages = commands.add_parser("packages", help="packages of strategies that are installed")
    install = commands.add_parser(
        "install",
        help="install a package of strategies",
        description="Install a package of strategies.",
        epilog=_SOURCES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    install.add_argument("source", help="where it comes from")
    update = commands.add_parser("update", help="install a package once more from its source")
    remove = commands.add_parser("remove", help="delete an installed package")
    for each in (update, remove):
        each.add_argument("package", help="its name, such as @scope/name")
    for each in (install, update):
        each.add_argument("--allow-code", action="store_true", help="let its Python code run")
    for each in (packages, install, update, remove):
        add_port(each)
    for each in (listing, show, check, packages, install, update, remove):
        each.add_argument("--json", action="store_true", help="print JSON")
    arguments = list(argv)
    if not arguments or arguments[0] == "--json":
        arguments.insert(0, "list")
    args = parser.parse_args(arguments)
    try:
        return _WORK[args.command](args)
    except UsageError as error:
        return fail(error)


def data_directory() -> Path:
    """Where the daemon keeps its state: `STRINGD_DATA_DIR`, a local `.stringd`, or the home's."""
    _, given = setting("DATA_DIR")
    return Path(given) if given else Path.home() / ".string" / "daemon"


def _list(args: argparse.Namespace) -> int:
    found = discover(Path.cwd(), data_directory())
    if args.json:
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
        for line in _wrapped(each.description or "", width + 2):
            print(visible(line))
    for warned in found.warnings:
        print(visible(f"! {warned.path}: {warned.reason}"))
    if not found.strategies:
        print("none found; put strategy files into .stringd/strategies/")
    return 0


def _show(args: argparse.Namespace) -> int:
    known = discover(Path.cwd(), data_directory()).strategies
    found = find_by_name(known, args.name)
    if found is None:
        raise UsageError(unknown_strategy(args.name, known))
    readme = found.path.parent / "README.md"
    text = readme.read_text("utf-8", "replace") if readme.is_file() else ""
    if args.json:
        facts = {"name": found.name, "description": found.description, "path": str(found.path)}
        print(json.dumps({**facts, "readme": text or None}))
        return 0
    print(visible(text or f"# {found.name}\n\n{found.description or 'no description'}\n"))
    print(visible(f"file: {found.path}"))
    return 0


def unknown_strategy(name: str, known: Sequence[Found]) -> str:
    """What to say when no strategy is called so: those there are, the closest first."""
    names = list(dict.fromkeys(each.name for each in known))
    near = closest_first(name, names)
    listed = ", ".join(near[:_MAX_NAMED]) + (", …" if len(near) > _MAX_NAMED else "")
    told = f"no strategy file or discovered strategy is called '{name}'"
    return f"{told}; stringd strategies lists those there are: {listed}" if near else told


def _wrapped(text: str, indent: int) -> list[str]:
    """A description as wide as the terminal, below the name it belongs to."""
    columns = max(shutil.get_terminal_size().columns, indent + 30)
    space = " " * indent
    return textwrap.wrap(text, columns - 1, initial_indent=space, subsequent_indent=space)


def _text(path: Path | None) -> str | None:
    return None if path is None else str(path)


def _check(args: argparse.Namespace) -> int:
    manifest = Path(args.manifest) if args.manifest else None
    results = {name: _problem(Path(name), manifest) for name in args.files}
    if args.json:
        print(json.dumps([{"file": n, "ok": p is None, "problem": p} for n, p in results.items()]))
    else:
        for name, problem in results.items():
            print(visible(f"{name}: ok" if problem is None else f"{name}: {problem}"))
    return int(any(problem is not None for problem in results.values()))


def _problem(path: Path, manifest: Path | None) -> str | None:
    try:
        check_strategy(path, manifest, data_directory())
    except RunServiceError as error:
        return str(error)
    return None


def _packages(args: argparse.Namespace) -> int:
    installed = _asked(args, r.HubList()).installed or []
    if args.json:
        print(msgspec.json.encode(installed).decode())
        return 0
    if not installed:
        print("no packages; to add one: stringd strategies install <source>")
    for each in installed:
        code = "  runs code" if each.executable_code_approved else ""
        print(visible(f"{each.name}  {each.version}{code}  {each.source or ''}"))
    return 0


def _install(args: argparse.Namespace) -> int:
    source = args.source
    if Path(source).expanduser().exists():
        # The daemon works elsewhere.
        source = str(Path(source).expanduser().absolute())
    return _installed(args, r.HubInstall(name=source, allow_code=args.allow_code))


def _update(args: argparse.Namespace) -> int:
    return _installed(args, r.HubUpdate(name=args.package, allow_code=args.allow_code))


def _installed(args: argparse.Namespace, request: r.HubInstall | r.HubUpdate) -> int:
    package = _asked(args, request).installed_package
    assert isinstance(package, msgspec.Struct)  # the daemon's only answer
    if args.json:
        print(msgspec.json.encode(package).decode())
        return 0
    print(visible(f"installed {package.name} {package.version} in {package.path}"))
    print("stringd strategies lists what it offers")
    return 0


def _remove(args: argparse.Namespace) -> int:
    removed = _asked(args, r.HubRemove(name=args.package)).removed is True
    if args.json:
        print(json.dumps({"package": args.package, "removed": removed}))
    elif removed:
        print(visible(f"removed {args.package}"))
    else:
        fail(f"{args.package} is not installed; stringd strategies packages lists those that are")
    return 0 if removed else 1


def _asked(args: argparse.Namespace, request: r.ClientMessage) -> m.HubPackages:
    answer = ask_daemon(args, request)
    if not isinstance(answer, m.HubPackages):
        raise UsageError("the daemon gave another answer; is it an earlier version?")
    return answer


_WORK = {
    "list": _list,
    "show": _show,
    "check": _check,
    "packages": _packages,
    "install": _install,
    "update": _update,
    "remove": _remove,
}
