"""`/apps`: what is installed, with version, source and description."""

import asyncio
import os
import shlex

import msgspec

from stringd.documents import parse_flags
from stringd.runtime.errors import CommandError
from stringd.runtime.packages import record
from stringd.runtime.packages.changes import main_document, version_of
from stringd.runtime.packages.install import package_directory
from stringd.runtime.packages.installed import KINDS, MAIN_FILE, Kind, installed
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import is_web
from stringd.wire.result import Result

_USAGE = "Usage: /apps [--json]"
_STATES = {
    "changed": "changed since it was installed",
    "unconfirmed": "installed by a program of the daemon, not by you",
    "unknown": "not installed by /install",
}


class InstalledPackage(msgspec.Struct, frozen=True):
    """One row, as `--json` prints it."""

    name: str
    kind: Kind
    version: str
    description: str
    source: str
    """As `/install` takes it; empty when it is not on record."""
    path: str
    """The document it opens with, or its address when it is linked."""
    state: str
    """`intact`, `linked`, `changed`, `unconfirmed` or `unknown`."""


async def apps(call: Call) -> Result:
    """Everything that is installed for this user."""
    flags = parse_flags(call.argument, switches=("json",))
    if flags.help:
        return Result.done(_USAGE)
    if flags.positional or any(name != "json" for name in flags.values):
        raise CommandError("COMMAND_UNSUPPORTED", _USAGE)
    found = await asyncio.to_thread(_packages, call.session.user.home)
    if "json" in flags.values:
        return Result.page("", msgspec.json.format(msgspec.json.encode(found)).decode())
    listed = "\n".join(_row(each) for each in found)
    nothing = "(nothing is installed; /install <source> adds an app or a tool)"
    return Result.page("Installed", listed or nothing)


def _packages(home: str) -> list[InstalledPackage]:
    return [
        _package(home, kind, name, uri)
        for kind in KINDS
        for name, uri in sorted(installed(home, kind).items())
    ]


def _package(home: str, kind: Kind, name: str, uri: str) -> InstalledPackage:
    if is_web(uri):
        return InstalledPackage(name, kind, "", "", uri, uri, "linked")
    directory = package_directory(home, name)
    document = main_document(directory)
    description = document.frontmatter.get("description")
    words = description.split() if isinstance(description, str) else []
    kept = record.record_of(home, name)
    return InstalledPackage(
        name,
        kind,
        version_of(document),
        " ".join(words),
        kept.source,
        str(directory / MAIN_FILE),
        record.whole(os.path.realpath(home), name).state,
    )


def _row(package: InstalledPackage) -> str:
    head = " ".join(filter(None, [f"{package.kind}:{package.name}", package.version]))
    lines = [f"{head} — {package.description}" if package.description else head]
    words = shlex.split(package.source)
    shown = words[0] if len(words) == 1 else package.source
    if package.state == "linked":
        lines.append(f"  linked to {shown}")
    else:
        lines.append(f"  from {shown or 'a source that is not on record'}")
    if package.state in _STATES:
        lines.append(f"  {_STATES[package.state]}")
    return "\n".join(lines)
