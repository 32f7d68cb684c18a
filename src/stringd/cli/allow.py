"""`stringd allow`: which directories outside a user's home file commands may reach."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from stringd.client.daemon import UsageError, chosen_user, port_from_environment
from stringd.client.http import DaemonConnection, HttpReply, TransportError


class _Failure(Exception):  # noqa: N818 - private, and never seen as a class
    """What stops the command, said to the person who typed it."""


class _User(NamedTuple):
    id: str
    home: str
    paths: list[str]


def main(name: str, argv: Sequence[str]) -> int:
    """Add a directory, remove one, or list them."""
    parser = _parser(name)
    args = parser.parse_args(argv)
    if args.path is None and not args.list:
        parser.error("name a directory, or use --list")
    try:
        connection = DaemonConnection(port_from_environment(), timeout=10.0)
        user = _user(connection, args.user)
        paths = user.paths
        if args.path is not None:
            paths = _changed(paths, _directory(args.path, args.remove), remove=args.remove)
            _store(connection, user, paths)
    except (_Failure, UsageError) as error:
        print(f"stringd: {error}", file=sys.stderr)
        return 1
    except TransportError as error:
        print(f"stringd: {error}. Start the daemon: stringd up", file=sys.stderr)
        return 1
    _show(user, paths, as_json=args.json)
    return 0


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Let file commands of a user reach a directory outside its home. This guards "
        "against a model's mistakes; a shell can do what you can.",
    )
    parser.add_argument("path", nargs="?", help="the directory (or file) to allow")
    parser.add_argument(
        "--user",
        default=chosen_user(),
        help="whose (STRINGD_USER, else the one in use, else default)",
    )
    parser.add_argument("--remove", action="store_true", help="no longer allow the path")
    parser.add_argument("--list", action="store_true", help="only show what is allowed")
    parser.add_argument("--json", action="store_true", help="print {user, home, allowed}")
    return parser


def _directory(typed: str, may_be_gone: bool) -> str:
    path = Path(typed).expanduser().absolute()
    if not may_be_gone and not path.exists():
        raise _Failure(f"no such directory: {path}")
    return os.path.normpath(path)


def _changed(paths: list[str], path: str, *, remove: bool) -> list[str]:
    if not remove:
        return paths if path in paths else [*paths, path]
    if path not in paths:
        raise _Failure(f"{path} was not allowed")
    return [known for known in paths if known != path]


def _user(connection: DaemonConnection, user_id: str) -> _User:
    listed = _json(connection.request("GET", "/users")).get("users")
    for item in listed if isinstance(listed, list) else ():
        if item["id"] == user_id:
            return _User(user_id, item["home"], list(item.get("allowedPaths", ())))
    first = f"string --user {shlex.quote(user_id)} file:main /info"
    raise _Failure(f"unknown user: {user_id}. It is registered by its first command: {first}")


def _store(connection: DaemonConnection, user: _User, paths: list[str]) -> None:
    fields = {"id": user.id, "home": user.home, "allowed_paths": paths}
    _json(connection.request("POST", "/users", json.dumps(fields).encode()))


def _json(reply: HttpReply) -> dict[str, object]:
    try:
        value = json.loads(reply.body)
    except ValueError:
        value = None
    if not isinstance(value, dict):
        raise _Failure("what answers on that port is not stringd. See stringd doctor.")
    if reply.status != 200:
        raise _Failure(str(value.get("error", f"the daemon answered {reply.status}")))
    return value


def _show(user: _User, paths: list[str], *, as_json: bool) -> None:
    if as_json:
        print(json.dumps({"user": user.id, "home": user.home, "allowed": paths}))
        return
    print(f"User {user.id} may reach:\n  {user.home} (home)")
    for path in paths:
        print(f"  {path}")
