"""`/tool:<name>`: an action of another document, without leaving this one."""

import os
import re
from pathlib import Path
from typing import Final

from stringd.actions.binding import read_arguments
from stringd.actions.schema import listing
from stringd.documents import EnvVariable, parse, parse_flags
from stringd.runtime.commands.act import argument_text, find_action, perform
from stringd.runtime.editing.text_file import decode, digest
from stringd.runtime.errors import CommandError
from stringd.runtime.packages.installed import installed
from stringd.runtime.pages.action_context import ActionCall, stored_names
from stringd.runtime.pages.load import load_file
from stringd.runtime.pages.provenance import SHARED_TOOLS, provenance_of
from stringd.runtime.pages.target import WebAddress, resolve
from stringd.runtime.pages.web import load_web
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import OpenedFile, Page
from stringd.wire.result import Result

_NAME: Final = re.compile(r"tool:([A-Za-z0-9_-]+)(?:\.([A-Za-z0-9_-]+))?", re.IGNORECASE)


async def tool(call: Call) -> Result:
    """Run a tool's action, its default one unless another is named."""
    match = _NAME.fullmatch(call.line.typed)
    if match is None:
        raise CommandError("NOT_FOUND", f"Tool not found: {call.line.typed[5:]}")
    name, asked = match.groups()
    page = await _find(call, name)
    if page is None:
        raise CommandError("NOT_FOUND", f"Tool not found: {name}")
    arguments = argument_text(call)
    ident = asked or page.document.default_action
    if ident is None and parse_flags(arguments).help:
        return Result.page("Actions", listing(page.document.actions.values(), f"/tool:{name}."))
    names = ", ".join(page.document.actions)
    if ident is None:
        raise CommandError(
            "INVALID_PAYLOAD", f"No default action for tool:{name}. Available: {names}"
        )
    action = find_action(page, ident)
    if action is None:
        raise CommandError(
            "NOT_FOUND", f'Action "{ident}" not found in tool:{name}. Available: {names}'
        )
    label = f"/tool:{name}.{action.id}" if asked else f"/tool:{name}"
    typed = read_arguments(action, arguments)
    defaults = {} if typed.flags.help else _defaults(call, page)
    return await perform(call, ActionCall(page, action, typed, label, defaults))


async def _find(call: Call, name: str) -> Page | None:
    """The tool's document: the user's tools, shared ones, one of that name, installed ones."""
    page = _in_folders(call, name)
    if page is not None:
        return page
    if name not in installed(call.session.user.home, "tool"):
        return None
    address = resolve(call, f"tool:{name}")
    if isinstance(address, WebAddress):
        return await load_web(call, address.url, may_be_private=address.may_be_private)
    return load_file(call, address)


def _in_folders(call: Call, name: str) -> Page | None:
    own = Path(call.session.user.home) / "tools"
    shared = Path(SHARED_TOOLS).expanduser()
    for path in (own / f"{name}.md", shared / f"{name}.md"):
        page = _load(call, path)
        if page is not None:
            return page
    for path in sorted(own.glob("*.md")):
        page = _load(call, path)
        if page is not None and page.document.frontmatter.get("name") == name:
            return page
    return None


def _load(call: Call, path: Path) -> Page | None:
    try:
        data = path.read_bytes()
    except OSError:
        return None
    sources = (OpenedFile(os.path.realpath(path), digest(data).hex()),)
    return Page(parse(decode(data), path.as_uri()), provenance_of(call, sources), sources)


def _defaults(call: Call, page: Page) -> dict[str, str]:
    """Values for declared variables nobody set. Raises `CommandError` for one without any."""
    held = stored_names(call, page.document, page.provenance).usable
    missing = [each for each in page.document.env if each.name not in held]
    for variable in missing:
        if variable.default is None:
            raise _required(variable)
    return {each.name: each.default for each in missing if each.default is not None}


def _required(variable: EnvVariable) -> CommandError:
    about = f' — "{variable.description}"' if variable.description else ""
    return CommandError(
        "INVALID_PAYLOAD", f"ERROR(ENV_REQUIRED): tool requires ${variable.name}{about}"
    )
