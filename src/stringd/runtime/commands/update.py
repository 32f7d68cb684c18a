"""`/update`: installed packages, from where they came, to what is offered there now."""

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple

from stringd.actions.errors import ActionError
from stringd.documents import parse_flags
from stringd.runtime.commands.packages import kept_lines, permitted, reload_topics
from stringd.runtime.errors import CommandError
from stringd.runtime.packages import record
from stringd.runtime.packages.candidate import candidate, put_into_place
from stringd.runtime.packages.changes import PackageChanges, compare
from stringd.runtime.packages.install import Wanted, package_directory
from stringd.runtime.packages.installed import KINDS, Kind, installed
from stringd.runtime.packages.kept_files import KeptFiles
from stringd.runtime.packages.mounts import mount_server, mounted
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import is_web
from stringd.wire.result import Result

_USAGE: Final = """Usage: /update [name …] [--check] [--accept]
  Without a name, everything that is installed. --check only says what would change.
  --accept lets a version through that asks for more than the installed one."""
_SWITCHES: Final = ("check", "accept")


class _InstalledEntry(NamedTuple):
    """A package that is installed."""

    name: str
    kind: Kind
    uri: str

    @property
    def label(self) -> str:
        return f"{self.kind}:{self.name}"


class _UpdateOptions(NamedTuple):
    check: bool
    accept: bool


class _HeldError(CommandError):
    """The package stays as it is: nothing changed, it is only looked at, or it asks for more."""

    def __init__(self, changes: PackageChanges) -> None:
        super().__init__("CONFLICT", "")
        self.changes = changes


async def update(call: Call) -> Result:
    """Install again what is installed, each from its source, and say what changed."""
    flags = parse_flags(call.argument, switches=_SWITCHES)
    if flags.help:
        return Result.done(_USAGE)
    unknown = next((name for name in flags.values if name not in _SWITCHES), None)
    if unknown is not None:
        raise CommandError("COMMAND_UNSUPPORTED", f"Unknown flag: {unknown}\n{_USAGE}")
    options = _UpdateOptions("check" in flags.values, "accept" in flags.values)
    entries = _entries(call, flags.positional)
    if not options.check and not await call.caller.is_the_owner():
        raise CommandError(
            "FILE_NOT_ALLOWED",
            "A program that this daemon started cannot update packages.\n"
            f"Recovery: type in your own terminal: string '/update {call.argument}'".rstrip(),
        )
    await permitted(call, "update")
    if len(entries) == 1 and flags.positional:
        return Result.done(await _update(call, entries[0], options))
    reports = [await _reported(call, entry, options) for entry in entries]
    return Result.page("Updates", "\n".join(reports) or "(nothing is installed)")


def _entries(call: Call, wanted: tuple[str, ...]) -> list[_InstalledEntry]:
    """The packages that are meant. Raises `CommandError`."""
    home = call.session.user.home
    found = {
        name: _InstalledEntry(name, kind, uri)
        for kind in KINDS
        for name, uri in sorted(installed(home, kind).items())
    }
    names = [name.removeprefix("app:").removeprefix("tool:") for name in wanted]
    missing = next((name for name in names if name not in found), None)
    if missing is not None:
        known = f"Installed: {', '.join(found)}" if found else "No packages are installed."
        raise CommandError("NOT_FOUND", f"Package not found: {missing}\n{known}")
    return [found[name] for name in names] if names else list(found.values())


async def _reported(call: Call, entry: _InstalledEntry, options: _UpdateOptions) -> str:
    try:
        return await _update(call, entry, options)
    except CommandError as error:
        # One source that is gone does not keep the others from being updated.
        return f"{entry.label}: not updated. {error.message}"


async def _update(call: Call, entry: _InstalledEntry, options: _UpdateOptions) -> str:
    """Update one package; what is to say about it. Raises `CommandError`."""
    if is_web(entry.uri):
        return f"{entry.label} is linked: it is always what {entry.uri} offers."
    home = call.session.user.home
    seen = list[PackageChanges]()

    def review(directory: Path) -> None:
        changes = compare(home, entry.name, directory)
        seen.append(changes)
        if not changes.any or options.check or (changes.demands and not options.accept):
            raise _HeldError(changes)

    try:
        source, kept = await _again(call, entry, review)
    except _HeldError as held:
        return _held(entry, held.changes, options)
    reload_topics(call, package_directory(home, entry.name))
    changes = seen[-1]
    first = f"Updated {entry.label}{changes.versions}"
    return "\n".join([first, f"  Source: {source}", *changes.lines, *kept_lines(kept)])


def _held(entry: _InstalledEntry, changes: PackageChanges, options: _UpdateOptions) -> str:
    """What to say when nothing was installed. Raises `CommandError` when it asks for more."""
    if not changes.any:
        return f"{entry.label}{changes.versions} is up to date."
    shown = "\n".join(changes.lines)
    if options.check:
        command = f"/update {entry.name}{' --accept' if changes.demands else ''}"
        return f"{entry.label}{changes.versions} would change:\n{shown}\nUse: {command}"
    raise CommandError(
        "CONFLICT",
        f"{entry.label}{changes.versions} asks for more than the installed one, so nothing was "
        f"changed:\n{shown}\nIf its owner wants that: /update {entry.name} --accept",
    )


async def _again(
    call: Call, entry: _InstalledEntry, review: Callable[[Path], None]
) -> tuple[str, KeptFiles]:
    """Install a package from where it came; its source. Raises `CommandError` or what `review`
    raises."""
    kept = record.record_of(call.session.user.home, entry.name)
    if not kept.confirmed:
        standing = record.PackageStatus(entry.name, "unconfirmed", kept)
        raise CommandError("FILE_NOT_ALLOWED", f"Not updated: {record.why_not(standing)}")
    words = shlex.split(kept.source)
    if words[:1] == ["--mcp"]:
        try:
            mount = await mounted(call, entry.name)
        except ActionError as error:
            raise CommandError(error.code, error.message) from error
        package = await mount_server(call, entry.name, mount, review=review)
        return package.origin.typed, KeptFiles()
    if len(words) != 1:
        raise CommandError(
            "NOT_FOUND",
            f"It is not on record where {entry.label} came from.\n"
            "Recovery: /install <source>, once; from then on /update finds it.",
        )
    wanted = Wanted(entry.kind, entry.name)
    done = await put_into_place(call, await candidate(call, words[0], wanted), review)
    return words[0], done.kept
