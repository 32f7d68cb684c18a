"""`stringd sandbox`: what walls there are, and which apps run outside them."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from stringd.cli.streams import visible
from stringd.runtime.settings import PACKAGES
from stringd.system.open_apps import OpenApps, OpenAppsError


def main(name: str, argv: Sequence[str]) -> int:
    """Show the sandbox of this machine, open an app, or close it again."""
    parser = _parser(name)
    args = parser.parse_args(argv)
    if (args.what is None) != (args.app is None):
        parser.error("name what to do and the app: open notes, or close notes")
    apps = OpenApps()
    try:
        if args.what == "open":
            apps.open(args.app)
        elif args.what == "close" and not apps.close(args.app):
            return _fail(f"{args.app} is not open. See stringd sandbox")
        names = apps.names()
    except OpenAppsError as error:
        return _fail(str(error))
    _show(names, as_json=args.json)
    if args.what == "open" and not _is_installed(args.app):
        note = f"no app called {args.app} is installed in ~/.string; check the name"
        print(visible(f"stringd: {note}, or: stringd sandbox close {args.app}"), file=sys.stderr)
    return 0


def _is_installed(app: str) -> bool:
    homes = Path("~/.string/users").expanduser()
    return homes.is_dir() and any((each / PACKAGES / app).is_dir() for each in homes.iterdir())


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Say which walls commands run behind on this machine, and which apps are open: "
        "commands of an open app run without a sandbox and can do what you can.",
    )
    parser.add_argument("what", nargs="?", choices=("open", "close"), help="what to do with an app")
    parser.add_argument("app", nargs="?", help="the name of an installed app")
    parser.add_argument("--json", action="store_true", help="print {sandbox, open}")
    return parser


def _show(names: list[str], *, as_json: bool) -> None:
    from stringd.system.sandbox import report

    found = report()
    if as_json:
        print(json.dumps({"sandbox": found.facts, "open": names}))
        return
    print(found.sentence)
    print(visible(f"open apps: {', '.join(names) or '(none)'}"))


def _fail(reason: str) -> int:
    print(visible(f"stringd: {reason}"), file=sys.stderr)
    return 1
