"""`string user`: who there is, and whom `string` acts as."""

import json
import sys
from pathlib import Path
from typing import Final
from urllib.parse import quote

from stringd.cli.streams import visible
from stringd.client.daemon import (
    UsageError,
    chosen_user,
    config_path,
    healthy,
    last_words,
    own_directory,
    port_from_environment,
    register,
    start,
)
from stringd.client.http import DaemonConnection, TransportError
from stringd.client.identity import make_home
from stringd.system.files import make_private_directory, write_atomically

USAGE: Final = """\
usage: string user list                    users of the daemon; * marks yours
       string user current                 whom you act as
       string user add <id> [home]         register a user (~/.string/users/<id>)
       string user use <id>                act as this user from now on
       string user set-home <id> <home>    move a user to another home
       string user set <id> diffs on|off   show in replies what an edit changed
       string user set <id> guard on|off   overwrite only files that the topic has read
       string user rm <id>                 remove a user; its files stay
"""


def main(words: list[str]) -> int:
    """Run `string user …`. Raises `UsageError`, `TransportError`."""
    match words:
        case ["list"]:
            return _list()
        case ["current"]:
            print(visible(chosen_user()))
        case ["add", user]:
            _store(user, _users().get(user) or own_directory(user))
        case ["add", user, home] | ["add", user, "--home", home]:
            _store(user, home)
        case ["set-home", user, home]:
            _store(user, home, must_exist=True)
        case ["set", user, "diffs" | "guard" as what, "on" | "off" as state]:
            _set(user, what, state)
        case ["use", user]:
            _choose(user)
        case ["rm", user]:
            _remove(user)
        case _:
            sys.stderr.write(USAGE)
            return 1
    return 0


def _list() -> int:
    mine = chosen_user()
    for user, home in _users().items():
        print(visible(f"{'*' if user == mine else ' '} {user}  {home}"))
    return 0


def _store(user: str, typed: str, *, must_exist: bool = False) -> None:
    _check(user)
    connection = _connection()
    if must_exist and user not in _users():
        raise UsageError(f"unknown user: {user}")
    home = str(Path(typed).expanduser().absolute())
    try:
        make_home(home)
    except OSError as error:
        raise UsageError(f"cannot use {home} as home: {error.strerror}") from error
    register(connection, user, home)
    print(f"{user}  {home}")


def _set(user: str, what: str, state: str) -> None:
    home = _users().get(user)
    if home is None:
        raise UsageError(f"unknown user: {user}")
    field = {"diffs": "diffs", "guard": "overwrite_guard"}[what]
    body = json.dumps({"id": user, "home": home, field: state == "on"}).encode()
    reply = _connection().request("POST", "/users", body)
    if reply.status != 200:
        raise TransportError(f"cannot change {user} ({reply.status})")
    print(f"{user}  {what} {state}")


def _choose(user: str) -> None:
    _check(user)
    _write_choices({**_choices(), "currentUser": user})
    print(user)


def _choices() -> dict[str, object]:
    path = Path(config_path())
    try:
        held = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValueError) as error:
        raise UsageError(f"cannot read {path}: {error}") from error
    if not isinstance(held, dict):
        raise UsageError(f"cannot read {path}: it holds no JSON object")
    return held


def _write_choices(choices: dict[str, object]) -> None:
    path = Path(config_path())
    text = json.dumps(choices, indent=2, ensure_ascii=False)
    make_private_directory(path.parent)
    write_atomically(path, f"{text}\n".encode(), 0o600)


def _remove(user: str) -> None:
    reply = _connection().request("DELETE", f"/users/{quote(user, safe='')}")
    if not json.loads(reply.body).get("deleted"):
        raise UsageError(f"unknown user: {user}")
    choices = _choices()
    if choices.get("currentUser") == user:
        # Else the next command would bring the user back.
        del choices["currentUser"]
        _write_choices(choices)
    print(user)


def _users() -> dict[str, str]:
    listed = json.loads(_connection().request("GET", "/users").body)["users"]
    return {each["id"]: each["home"] for each in listed}


def _connection() -> DaemonConnection:
    port = port_from_environment()
    if not healthy(port) and not start(port):
        raise TransportError(f"failed to start stringd on port {port}{last_words()}")
    return DaemonConnection(port)


def _check(user: str) -> None:
    if not user.strip() or not user.isprintable():
        raise UsageError("a user id is printable text")
