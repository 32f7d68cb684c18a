"""`/install`, `/uninstall`: apps and tools come and go."""

import asyncio
from collections.abc import Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stringd.documents import parse_flags, tokens
from stringd.net.host_proxy import HostListError, hosts_in
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.candidate import candidate, put_into_place
from stringd.runtime.packages.install import (
    Installation,
    InstallError,
    Package,
    Wanted,
    install_link,
    package_directory,
    remove,
)
from stringd.runtime.packages.installed import MAIN_FILE
from stringd.runtime.packages.kept_files import KeptFiles
from stringd.runtime.packages.mcp_app import Mount
from stringd.runtime.packages.mcp_servers import stop_app
from stringd.runtime.packages.mounts import mount_server, read_header
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import is_web, path_of
from stringd.runtime.topics.session import Session
from stringd.system.sandbox import Level
from stringd.wire.result import Result

if TYPE_CHECKING:
    from stringd.runtime.packages.installed import Kind
    from stringd.runtime.packages.stored_names import Choice

_USAGE: Final = """Usage: /install <source> [--app|--tool] [--link] [--as <name>]
                [--keep-names|--forget-names]
  <source> is a file, a folder with a string.md, a zip or tgz of one, a URL of any of them,
  a GitHub address or gh:owner/repo[/path]"""
_MCP_USAGE: Final = """Usage: /install --mcp <name> [--keep-names|--forget-names]
                [--sandbox <level>] [--network none|<host>,…] -- <command…>
       /install --mcp <name> [--keep-names|--forget-names] <url> [-H "Name: value"] …"""
_UNINSTALL_USAGE: Final = "Usage: /uninstall <name>"
_UNCONFIRMED: Final = (
    "A program that this daemon started installed it: it has no secrets and runs no commands "
    "until you type the same /install in your own terminal."
)
_CHOICES: Final[dict[str, "Choice"]] = {"keep-names": "keep", "forget-names": "forget"}
_SWITCHES: Final = ("app", "tool", "link", *_CHOICES)


async def install(call: Call) -> Result:
    """Install an app or a tool from a file, a folder, the web or the open document."""
    if "--mcp" in tokens(call.argument):
        return await _install_server(call)
    flags = parse_flags(call.argument, switches=_SWITCHES)
    if flags.help:
        return Result.done(f"{_USAGE}\n{_MCP_USAGE}")
    unknown = [name for name in flags.values if name not in (*_SWITCHES, "as")]
    if unknown:
        raise InstallError(f"Unknown flag: {unknown[0]}\n{_USAGE}")
    if "as" in flags.bare or flags.values.get("as") == "":
        raise InstallError("--as requires a value: --as <local-name>")
    kind: Kind | None = None
    if "app" in flags.values or "tool" in flags.values:
        kind = "app" if "app" in flags.values else "tool"
    wanted = Wanted(kind, flags.values.get("as"), "link" in flags.values, _choice(flags.values))
    source = next(filter(None, flags.positional), None) or _open_document(call)
    try:
        if wanted.link and not is_web(source):
            raise InstallError("--link requires an http(s) URL source.")
        await permitted(call, "install")
        return await _install_from(call, source, wanted)
    except InstallError:
        raise
    except CommandError as error:
        told = ("FILE_NOT_ALLOWED", "CONFLICT")
        code = error.code if error.code in told else "COMMAND_UNSUPPORTED"
        raise InstallError(error.message, code) from error


async def permitted(call: Call, verb: str) -> None:
    """An agent of a run is asked before packages change. Raises `CommandError`."""
    if call.caller.permission is not None:
        await call.caller.permission.change(f"/{verb} {call.argument}")


async def uninstall(call: Call) -> Result:
    """Remove a package and close the topics that show it; what it stored stays."""
    given = tokens(call.argument)
    if "--help" in given or "-h" in given:
        return Result.done(_UNINSTALL_USAGE)
    if not given:
        raise CommandError("COMMAND_UNSUPPORTED", _UNINSTALL_USAGE)
    await permitted(call, "uninstall")
    name = given[0].removeprefix("app:").removeprefix("tool:")
    home = call.session.user.home
    entry = await asyncio.to_thread(remove, home, name)
    if entry is None:
        raise CommandError("NOT_FOUND", f"Package not found: {name}")
    kind, uri, kept = entry
    closed = await _close_topics(call, name, uri, package_directory(home, name))
    await stop_app(call.services.mcp, home, name)
    ended = await call.services.engine.jobs.end(home, name)
    message = f"Uninstalled {kind}:{name}"
    if closed:
        noun = "session" if len(closed) == 1 else "sessions"
        message += f"\n  Closed {len(closed)} active {noun}: {', '.join(closed)}"
    if kept is not None:
        message += f"\n  Kept: files that its actions made, in {kept}"
    if ended:
        message += f"\n  Ended {ended} running {'job' if ended == 1 else 'jobs'}"
    return Result.done(message)


async def _install_server(call: Call) -> Result:
    """Mount an MCP server: `--mcp <name> -- <command…>` or `--mcp <name> <url>`."""
    before, command = tokens(call.argument), list[str]()
    if "--" in before:
        at = before.index("--")
        before, command = before[:at], before[at + 1 :]
    headers = _headers(before)
    sandbox, network = _valued(before, "--sandbox"), _valued(before, "--network")
    flags = [word.removeprefix("--") for word in before if word.removeprefix("--") in _CHOICES]
    named = [word for word in before if word != "--mcp" and word.removeprefix("--") not in flags]
    url = named[1] if len(named) > 1 and is_web(named[1]) else None
    if not named or len(named) > 2 or bool(command) == bool(url) or (command and headers):
        raise InstallError(_MCP_USAGE)
    if url and (sandbox or network):
        raise InstallError("--sandbox and --network are for servers started by a command.")
    mount = Mount(
        tuple(command),
        url,
        headers=headers,
        sandbox=_level(sandbox),
        network=_network(network),
        cwd=call.cwd if command else None,
    )
    await permitted(call, "install")
    confirmed = await call.caller.is_the_owner()
    if mount.sandbox is Level.OPEN and not confirmed:
        raise CommandError(
            "FILE_NOT_ALLOWED",
            "What the daemon started cannot mount a server outside the sandbox.\n"
            "Recovery: if you want it, type in your own terminal: "
            f"string '/install {call.argument}'",
        )
    package = await mount_server(call, named[0], mount, confirmed=confirmed, names=_choice(flags))
    path = package_directory(call.session.user.home, package.name) / MAIN_FILE
    return _installed(call, package, Installation(path))


def _valued(words: list[str], flag: str) -> str:
    """Take a flag and its value out of the words. Raises `InstallError`."""
    if flag not in words:
        return ""
    at = words.index(flag)
    if at + 1 == len(words):
        raise InstallError(f"{flag} takes a value.\n{_MCP_USAGE}")
    value = words[at + 1]
    del words[at : at + 2]
    return value


def _level(text: str) -> Level:
    try:
        return Level(text or Level.WORKSPACE)
    except ValueError as error:
        raise InstallError(f"--sandbox must be {', '.join(Level)}, not '{text}'.") from error


def _network(text: str) -> str | tuple[str, ...]:
    """What `--network` says, as `mcp.json` keeps it. Raises `InstallError`."""
    if text in ("", "open", "none"):
        return text or "open"
    try:
        return tuple(map(str, hosts_in(text.split(","))))
    except HostListError as error:
        raise InstallError(f"--network: {error}") from error


def _choice(flags: Collection[str]) -> "Choice | None":
    """What the owner says about `$NAMES` stored for another package. Raises `InstallError`."""
    named = [flag for flag in _CHOICES if flag in flags]
    if len(named) > 1:
        raise InstallError("--keep-names and --forget-names exclude each other.")
    return _CHOICES[named[0]] if named else None


def _headers(words: list[str]) -> dict[str, str]:
    """Take `-H` and the header after it out of the words. Raises `InstallError`."""
    found: dict[str, str] = {}
    while "-H" in words:
        at = words.index("-H")
        header = read_header(words[at + 1]) if at + 1 < len(words) else None
        if header is None:
            raise InstallError(f"-H takes a header in quotes.\n{_MCP_USAGE}")
        found[header[0]] = header[1]
        del words[at : at + 2]
    return found


def _open_document(call: Call) -> str:
    location = call.session.location
    if location is None:
        raise InstallError(f"No source specified and no document is open.\n{_USAGE}")
    return location.uri


async def _install_from(call: Call, source: str, wanted: Wanted) -> Result:
    offered = await candidate(call, source, wanted)
    package, home = offered.package, call.session.user.home
    if wanted.link or (offered.fetched is not None and offered.fetched.link):
        await asyncio.to_thread(install_link, home, package, source)
        return _report(f"Linked {package.label} (URL shortcut)", package, source)
    return _installed(call, package, await put_into_place(call, offered), offered.missing)


def _installed(
    call: Call, package: Package, done: Installation, missing: Sequence[str] = ()
) -> Result:
    reload_topics(call, done.main.parent)
    report = _report(f"Installed {package.label}", package, str(done.main)).message
    return Result.done("\n".join([report, *kept_lines(done.kept), *_missing(missing)]))


def reload_topics(call: Call, directory: Path) -> None:
    """Topics that show an earlier state of a package load it again with their next command."""
    for slot in call.topics.sessions(call.session.user.id):
        location = slot.session.location if slot.session else None
        path = path_of(location.uri) if location is not None else None
        if location is not None and path is not None and path.is_relative_to(directory):
            location.page = None


def kept_lines(kept: KeptFiles) -> list[str]:
    """What became of files that actions had made, for the reply."""
    lines = []
    if kept.carried:
        files = "1 file" if kept.carried == 1 else f"{kept.carried} files"
        lines.append(f"Carried over: {files} that its actions made")
    if kept.aside is not None:
        lines.append(f"Put aside: files that its actions changed, in {kept.aside}")
    return lines


def _missing(pages: Sequence[str]) -> list[str]:
    if not pages:
        return []
    more = f", +{len(pages) - 5} more" if len(pages) > 5 else ""
    return [f"Linked pages that could not be fetched: {', '.join(pages[:5])}{more}"]


def _report(first: str, package: Package, path: str) -> Result:
    use = f"/open {package.label}" if package.kind == "app" else f"/{package.label}"
    text = f"{first}\n  Source: {package.origin.typed}\n  Path: {path}\nUse: {use}"
    return Result.done(text if package.confirmed else f"{text}\n{_UNCONFIRMED}")


async def _close_topics(call: Call, name: str, uri: str, directory: Path) -> list[str]:
    """Close every topic that shows a package; their names."""
    user = call.session.user.id
    closed: list[str] = []
    for slot in list(call.topics.sessions(user)):
        session = slot.session
        if session is None or not _shows(session, name, uri, directory):
            continue
        forgotten = await call.topics.forget(user, session.topic)
        if forgotten is not None:
            await forgotten.release()
            closed.append(str(session.topic))
    return closed


def _shows(session: Session, name: str, uri: str, directory: Path) -> bool:
    topic = session.topic
    if topic.type == "app" and topic.name.partition(":")[0] == name:
        return True
    if session.location is None:
        return False
    path = path_of(session.location.uri)
    return session.location.uri == uri or (path is not None and path.is_relative_to(directory))
