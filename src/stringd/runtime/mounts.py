"""Apps that are MCP servers: mounting them, and asking them in the name of a topic."""

import os
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

import msgspec

from stringd.actions.cli import command_environment
from stringd.actions.errors import ActionError
from stringd.actions.place import Value
from stringd.documents import parse
from stringd.runtime import environment
from stringd.runtime.errors import CommandError
from stringd.runtime.mcp_apps import MOUNT_FILE, SCHEME, Mount, arguments_of, document_of, with_ids
from stringd.runtime.mcp_servers import ServerKey, call_tool, describe_server, read_resource
from stringd.runtime.packages import (
    MAIN_FILE,
    Origin,
    Package,
    check_collision,
    install_files,
    package_directory,
    package_name,
)
from stringd.runtime.page import Page
from stringd.wire.topic import Topic

if TYPE_CHECKING:
    from mcp import Client

    from stringd.actions.run import ToolCaller
    from stringd.runtime.call import Call


async def mount_server(
    call: "Call", raw_name: str, command: tuple[str, ...], url: str | None
) -> Package:
    """Start a server once, write down what it offers, and install it as an app.

    Raises `CommandError`.
    """
    name = package_name(raw_name)
    mount = Mount(command, url)
    try:
        found = await _use(call, name, mount, _described)
    except ActionError as error:
        await call.runtime.mcp.stop_app(call.session.user.home, name)
        raise CommandError("COMMAND_UNSUPPORTED", error.message) from error
    title, instructions, tools, resources = found
    mount = Mount(command, url, title, instructions, with_ids(tools), tuple(resources))
    text = document_of(name, mount)
    source = url or " ".join(command)
    package = Package(name, "app", Origin(source, f"mcp {source}"), parse(text))
    home = call.session.user.home
    check_collision(home, package)
    content = msgspec.json.format(msgspec.json.encode(mount), indent=2)
    install_files(home, package, {MAIN_FILE: text.encode(), MOUNT_FILE: content})
    return package


def tool_caller(call: "Call", page: Page) -> "ToolCaller | None":
    """Who calls the tools of a mounted page; None when the page is no mount of this user."""
    name = _mounted_name(call, page)
    if name is None:
        return None

    async def ask(tool: str, values: Mapping[str, Value]) -> str:
        mount = _mount(call, name)
        info = mount.tools.get(tool)
        if info is None:
            raise ActionError("NOT_FOUND", f"The server of app:{name} has no tool {tool}.")
        arguments = arguments_of(info, values)
        answer = await _use(call, name, mount, lambda c: call_tool(c, info.name, arguments))
        return str(answer)

    return ask


async def open_resource(call: "Call", uri: str) -> Page:
    """The page of a server's resource. Raises `CommandError`."""
    name, _, resource = uri.removeprefix(SCHEME).partition("/")
    try:
        mount = _mount(call, name)
        known = {each.uri: each.uri for each in mount.resources}
        wanted = known.get(resource) or unquote(resource)
        text = await _use(call, name, mount, lambda client: read_resource(client, wanted))
    except ActionError as error:
        raise CommandError(error.code, error.message) from error
    return Page(parse(str(text), uri))


async def _described(client: "Client") -> Any:
    tools, resources = await describe_server(client)
    about = client.server_info
    title = (about.title or about.name) if about is not None else ""
    return title, client.instructions or "", tools, resources


async def _use(
    call: "Call", name: str, mount: Mount, ask: "Callable[[Client], Awaitable[Any]]"
) -> Any:
    session = call.session
    topic = session.topic
    own = topic.type == "app" and topic.name.partition(":")[0] == name
    key = ServerKey(session.user.home, topic.name if own else name)
    variables = environment.own(session.user.home, Topic("app", key.topic_name))
    seen = command_environment(os.environ, variables, {})
    limit = call.runtime.settings.cli_action_timeout
    return await call.runtime.mcp.use(key, mount, seen, ask, limit)


def _mounted_name(call: "Call", page: Page) -> str | None:
    """The package a page is the main file of, if it lies where this user's packages are."""
    path = page.path
    packages = Path(call.session.user.home) / "packages"
    if path is None or path.name != MAIN_FILE or path.parent.parent != packages:
        return None
    return path.parent.name


def _mount(call: "Call", name: str) -> Mount:
    path = package_directory(call.session.user.home, name) / MOUNT_FILE
    try:
        return msgspec.json.decode(path.read_bytes(), type=Mount)
    except (OSError, msgspec.DecodeError) as error:
        raise ActionError("NOT_FOUND", f"app:{name} is no mounted MCP server.") from error
