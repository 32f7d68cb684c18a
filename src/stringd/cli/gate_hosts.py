"""`stringd gate hosts`: the other machines that commands may run on."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stringd.gate.hosts import HostEntry, Hosts

_EPILOG: Final = """\
add shows the key that the machine shows now and pins it: from then on the gate talks to
that name only while it shows this key. It uses your ssh and its configuration; logging in
must work without a password. Commands as root need root's login or a sudo there that does
not ask for a password.

Agents then ask with `stringd request --host NAME …` or the host of the MCP tool execute.
"""
_ROOT: Final = {
    "login": "the login is root",
    "sudo": "sudo works without a password",
    "password": "sudo wants a password there, so commands as root are refused",
    "missing": "there is no sudo, so commands as root are refused",
}


def main(argv: Sequence[str]) -> int:
    """Run `stringd gate hosts`."""
    from stringd.gate.errors import RefusalError
    from stringd.gate.hosts import FILE_NAME, Hosts
    from stringd.gate.settings import data_directory

    try:
        options = _parser().parse_args(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    hosts = Hosts(data_directory(os.environ) / FILE_NAME)
    try:
        match options.what:
            case "add":
                return _add(hosts, options)
            case "remove":
                hosts.remove(options.name)
                print(f"{options.name} is no longer in the list")
                return 0
            case "test":
                return _test(hosts, options)
            case _:
                return _list(hosts, options)
    except RefusalError as error:
        print(f"stringd gate hosts: {error}", file=sys.stderr)
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stringd gate hosts",
        description="Keeps the list of other machines that commands may run on.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(what="list", json=False)
    what = parser.add_subparsers(dest="what", metavar="add|list|remove|test")
    add = what.add_parser("add", help="pin a machine's key and give it a name")
    add.add_argument("name", help="what agents and questions call it")
    add.add_argument("destination", help="as for ssh: HOST, USER@HOST or a name of your ssh config")
    add.add_argument("--port", type=int, help="its SSH port")
    add.add_argument("--description", default="", help="a line for the list")
    add.add_argument("--fingerprint", metavar="SHA256:…", help="the key it must show; asks nothing")
    add.add_argument("--replace", action="store_true", help="pin a new key for a name in the list")
    show = what.add_parser("list", help="show the list")
    show.add_argument("--json", action="store_true", help="for scripts")
    remove = what.add_parser("remove", help="take a machine from the list")
    remove.add_argument("name")
    test = what.add_parser("test", help="log in there and say what would work")
    test.add_argument("name")
    test.add_argument("--json", action="store_true", help="for scripts")
    return parser


def _add(hosts: "Hosts", options: argparse.Namespace) -> int:
    from stringd.gate.hosts import HostEntry, HostError
    from stringd.gate.pinning import keys_known_already, shown_key

    before = hosts.all().get(options.name)
    if before is not None and not options.replace:
        raise HostError(
            f"{options.name} is in the list already ({before.address}, {before.fingerprint}); "
            "--replace pins another key"
        )
    ssh = _ssh()
    key = shown_key(ssh, options.name, options.destination, options.port)
    entry = HostEntry(options.name, options.destination, key, options.port, options.description)
    known = keys_known_already(ssh, options.destination, options.port)
    if not _agrees(entry, before, known, options.fingerprint):
        print("Nothing was changed.", file=sys.stderr)
        return 1
    hosts.put(entry)
    print(f"{entry.name} is in the list. To try it: stringd gate hosts test {entry.name}")
    return 0


def _agrees(
    entry: "HostEntry", before: "HostEntry | None", known: set[str], wanted: str | None
) -> bool:
    """Show the key and ask, unless the caller named it. Raises `HostError` for another one."""
    from stringd.gate.hosts import HostError

    print(f"{entry.address} shows the key {entry.fingerprint}")
    if before is not None:
        same = "the same as before" if before.key == entry.key else f"before: {before.fingerprint}"
        print(f"  {same}")
    if entry.key in known:
        print("  your known_hosts has the same key for it")
    elif known:
        print("  YOUR KNOWN_HOSTS HAS ANOTHER KEY FOR IT")
    else:
        print("  your known_hosts does not know it: compare with what the machine's owner says")
    if wanted is not None:
        if entry.fingerprint.rpartition(" ")[2] != wanted:
            raise HostError(f"that is not {wanted}; nothing was changed")
        return True
    if not sys.stdin.isatty():
        raise HostError(
            "there is no terminal to ask at; compare the key and name it with --fingerprint"
        )
    try:
        return input(f"Pin this key for {entry.name}? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _list(hosts: "Hosts", options: argparse.Namespace) -> int:
    entries = hosts.all().values()
    if options.json:
        print(json.dumps([_fields(entry) for entry in entries], indent=2))
    elif not entries:
        print("There are no hosts. To add one: stringd gate hosts add NAME USER@ADDRESS")
    for entry in () if options.json else entries:
        note = f"  {entry.description}" if entry.description else ""
        print(f"{entry.name}  {entry.address}  {entry.fingerprint}{note}")
    return 0


def _test(hosts: "Hosts", options: argparse.Namespace) -> int:
    from stringd.gate.display import render
    from stringd.gate.errors import TroubleError
    from stringd.gate.pinning import probe

    entry = hosts.get(options.name)
    try:
        found = probe(_ssh(), entry)
    except TroubleError as error:
        if not options.json:
            raise
        print(json.dumps({"ok": False, "message": str(error)}))
        return 1
    if options.json:
        print(json.dumps({"ok": True, **_fields(entry), **found._asdict()}))
        return 0
    print(f"{entry.name} answers and shows the pinned key ({entry.fingerprint})")
    print(f"  login: {render(found.login)}, {render(found.system)}")
    print(f"  as root: {_ROOT.get(found.root, render(found.root))}")
    return 0


def _fields(entry: "HostEntry") -> dict[str, object]:
    return {
        "name": entry.name,
        "destination": entry.destination,
        "port": entry.port,
        "fingerprint": entry.fingerprint,
        "description": entry.description,
    }


def _ssh() -> str:
    from stringd.gate.ssh import find_ssh

    return find_ssh(os.environ).path or "ssh"
