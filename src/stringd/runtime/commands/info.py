"""`/info`: where a topic is."""

from collections.abc import Iterable, Iterator
from typing import Final

from stringd import __version__
from stringd.actions.provenance import app_of
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.installed import installed
from stringd.runtime.pages.shortcuts import resolve_shortcut
from stringd.runtime.pages.show import current_page
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import Location, Page, display_directory, is_web, path_of
from stringd.wire.result import Result

_AUTO_SHOWN: Final = 12
_JOB_SHOWN: Final = 80
_VERSION: Final = f"string:    v{__version__}"


def info(call: Call) -> Result:
    """Key-value lines about the topic and its open document, or what one shortcut means."""
    session = call.session
    if call.argument.startswith("@"):
        return _shortcut(call, call.argument.strip())
    warnings: tuple[str, ...] = ()
    if session.location is None:
        text = _without_document(call)
    else:
        rows, warnings = _with_document(call, session.location)
        text = "\n".join(f"{key + ':':<11}{value}" for key, value in rows)
    for line in (*_jobs(call), *_events(call)):
        text = f"{text}\n{line}"
    if session.variables:
        pairs = ((name, value.replace("\n", "\\n")) for name, value in session.variables.items())
        shown = ", ".join(f'{{{name}}}="{value}"' for name, value in pairs)
        text = f"{text}\nvars:      {shown}"
    if session.location is None:
        text = f"{text}\n{_VERSION}"
    if warnings:
        text = "\n".join([text, "", "Warnings:", *(f"  {line}" for line in warnings)])
    return Result.page("Session info", text)


def _jobs(call: Call) -> Iterable[str]:
    """What actions of this topic's app left running, one line each."""
    return _app_jobs(call) if call.session.topic.type == "app" else ()


def _app_jobs(call: Call) -> Iterator[str]:
    session = call.session
    app = session.topic.name.partition(":")[0]
    for job in call.services.engine.jobs.of(session.user.home, app):
        command = " ".join(job.command.split())
        shown = command if len(command) <= _JOB_SHOWN else f"{command[: _JOB_SHOWN - 1]}…"
        yield f"job:       {job.pid} since {job.since:%Y-%m-%d %H:%M:%SZ}: {shown}"


def _events(call: Call) -> tuple[str, ...]:
    """How many events wait here."""
    session = call.session
    waiting = call.services.inbox.pending(session.user.id, session.topic.canonical)
    return (f"events:    {waiting} pending (/events)",) if waiting else ()


def _shortcut(call: Call, name: str) -> Result:
    value = resolve_shortcut(call.session, name[1:])
    if value is None:
        raise CommandError("NOT_FOUND", f"Shortcut not found: {name}")
    shown = value if isinstance(value, str) else f"({', '.join(value)})"
    return Result.page("", f"{name} → {shown}")


def _without_document(call: Call) -> str:
    session = call.session
    history = f"history:   {len(session.history)} entries"
    if session.topic.type == "app":
        return f"{_app(call)}\n{history}"
    where = display_directory(session.user.home, session.directory)
    return f"cwd:       {where}\nfile:      (none open)\n{history}"


def _app(call: Call) -> str:
    """An app topic whose app was not opened yet."""
    session = call.session
    name = session.topic.name.partition(":")[0]
    known = sorted(installed(session.user.home, "app"))
    present = name in known
    return "\n".join(
        [
            f"app:       {session.topic.name}",
            f"status:    {'installed, not yet opened' if present else 'not installed'}",
            f"installed: {', '.join(known) or '(none)'}",
            f"hint:      {'/open' if present else '/install <source>'}",
        ]
    )


def _with_document(call: Call, location: Location) -> tuple[list[tuple[str, str]], tuple[str, ...]]:
    """Rows and warnings; after a restart the document itself may be gone."""
    try:
        page = current_page(call)
    except CommandError as error:
        rows = [*_address(call, location.uri)]
        if location.block:
            rows.append(("block", f"#{location.block}"))
        history = ("history", f"{len(call.session.history)} entries")
        return [*rows, history], (error.message.partition("\n")[0],)
    return [*_rows(call, location, page)], page.warnings


def _rows(call: Call, location: Location, page: Page) -> Iterator[tuple[str, str]]:
    session = call.session
    document = page.document
    if session.topic.type == "app":
        yield "app", session.topic.name
        for key in ("name", "version"):
            value = document.frontmatter.get(key)
            if isinstance(value, str):
                yield key, value
    if session.topic.type != "app" or app_of(page.provenance) is None:
        # Where an app's files are is nothing that its reader needs.
        yield from _address(call, page.uri)
    if document.title:
        yield "title", document.title
    if location.block:
        yield "block", f"#{location.block}"
    if document.block_ids:
        yield "blocks", ", ".join(document.block_ids)
    if document.menus:
        yield "menus", ", ".join(document.menus)
    shortcuts = _shortcuts(call, page)
    if shortcuts:
        yield "shortcuts", shortcuts
    if document.actions:
        yield "actions", ", ".join(f"{a.id}({a.method})" for a in document.actions.values())
    if document.converted:
        yield "source", "converted from HTML (use /source to view original)"
    yield "history", f"{len(session.history)} entries"


def _address(call: Call, uri: str) -> Iterator[tuple[str, str]]:
    session = call.session
    path = path_of(uri)
    if session.topic.type == "web" or is_web(uri):
        yield "url", uri
    if path is not None:
        yield "file", session.shown(uri)
        directory = session.directory or path.parent
        yield "cwd", display_directory(session.user.home, directory)
    elif not is_web(uri):
        yield "uri", uri


def _shortcuts(call: Call, page: Page) -> str:
    own = [f"@{name}" for name in (*page.document.shortcuts, *call.session.value_shortcuts)]
    auto = [f"@{name}" for name in call.session.auto_shortcuts]
    names = [*own, *auto]
    if len(names) <= _AUTO_SHOWN:
        return ", ".join(names)
    more = len(names) - _AUTO_SHOWN
    return f"{', '.join(names[:_AUTO_SHOWN])}, +{more} more ({len(names)} total)"
