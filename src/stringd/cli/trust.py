"""`stringd trust`: which files and folders of other people may start something."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from stringd.cli.streams import forget_typed, visible
from stringd.runs import Offer, offer_of
from stringd.system.data_directory import ForeignDirectoryError, adopt
from stringd.system.lineage import started_by_a_daemon
from stringd.system.trust import NotTheOwnerError, TrustError, TrustStore, real_path


def main(name: str, argv: Sequence[str]) -> int:
    """Trust a path, take that back, or list what is trusted."""
    parser = _parser(name)
    args = parser.parse_args(argv)
    if args.path is None and not args.list:
        parser.error("name a file or a folder, or use --list")
    trust = TrustStore()
    try:
        if args.path is not None and started_by_a_daemon():
            raise NotTheOwnerError
        if args.list:
            return _list(trust, as_json=args.json)
        if args.remove:
            return _remove(Path(args.path), trust, as_json=args.json)
        if args.data_dir:
            return _adopt(Path(args.path), trust, as_json=args.json)
        return _trust(Path(args.path), trust, as_json=args.json)
    except (TrustError, ForeignDirectoryError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.strerror}: {error.filename}")


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Trust a file, or what .stringd and .comma of a folder hold: MCP servers, "
        "strategies, skills and code. Trust is for the content as it is now; whatever changes is "
        "not used until you trust it again.",
    )
    parser.add_argument("path", nargs="?", help="the file or folder")
    parser.add_argument("--remove", action="store_true", help="no longer trust the path")
    parser.add_argument("--list", action="store_true", help="only show what is trusted")
    parser.add_argument(
        "--data-dir", action="store_true", help="the path is a data directory of your own"
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _list(trust: TrustStore, *, as_json: bool) -> int:
    entries = trust.entries()
    if as_json:
        print(json.dumps({"trusted": [each._asdict() for each in entries]}))
        return 0
    for each in entries:
        print(visible(f"{each.path}  ({_kind(each.digest)}, since {each.since[:10]})"))
    if not entries:
        print(
            "nothing is trusted; your own data directory and what ships with stringd need no entry"
        )
    return 0


def _kind(digest: str) -> str:
    return "data directory" if digest.startswith("data-directory:") else "content"


def _remove(path: Path, trust: TrustStore, *, as_json: bool) -> int:
    if not trust.remove(path):
        return _fail(f"{path} was not trusted. See stringd trust --list")
    print(json.dumps({"removed": real_path(path)}) if as_json else f"no longer trusted: {path}")
    return 0


def _adopt(path: Path, trust: TrustStore, *, as_json: bool) -> int:
    adopt(path, trust)
    shown = {"dataDirectory": real_path(path)}
    print(json.dumps(shown) if as_json else f"{path} is a data directory of yours")
    return 0


def _trust(path: Path, trust: TrustStore, *, as_json: bool) -> int:
    offer = offer_of(path, trust)
    offer.accept(trust)
    if as_json:
        entries = [each._asdict() for each in offer.entries]
        print(json.dumps({"path": offer.path, "uses": offer.uses, "trusted": entries}))
        return 0
    print(described(offer))
    print(f"trusted: {_one_line(offer.path)}")
    return 0


def described(offer: Offer) -> str:
    """What trusting would allow, a line each."""
    return "\n".join(f"  {_one_line(line)}" for line in offer.uses)


def ask(path: str, trust: TrustStore) -> bool:
    """Show what a path would start and ask the person at this terminal, once; whether it is yes.

    Raises `TrustError`.
    """
    if started_by_a_daemon():
        raise NotTheOwnerError
    offer = offer_of(Path(path), trust)
    print(f"{_one_line(offer.path)} is not trusted. It offers:", file=sys.stderr)
    print(described(offer), file=sys.stderr)
    forget_typed()
    print("Trust this content? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        return False
    # What is recorded is what was shown, whatever the files say by now.
    offer.accept(trust)
    return True


def can_ask() -> bool:
    """Whether a person is at this terminal."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def _one_line(text: str) -> str:
    """Text of a stranger on one line, with nothing in it that could pose as something else."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def _fail(reason: str) -> int:
    print(visible(f"stringd: {reason}"), file=sys.stderr)
    return 1
