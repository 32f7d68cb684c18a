"""Apps that are MCP servers: mounting them, and asking them in the name of a topic."""

import asyncio
import os
import re
import shlex
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

from stringd.actions.cli import command_environment
from stringd.actions.errors import ActionError, payload_error
from stringd.actions.place import Value
from stringd.actions.provenance import InstalledApp, McpResource, Provenance
from stringd.actions.secrets import NOTHING_HIDDEN, Mask
from stringd.actions.templates import Variable, cut
from stringd.documents import parse
from stringd.net.fetch import FetchError
from stringd.net.host_proxy import HostListError
from stringd.net.mcp_client import McpError, ServerSpec
from stringd.net.mcp_walls import ServerWalls, server_network
from stringd.runtime.errors import CommandError
from stringd.runtime.packages import record
from stringd.runtime.packages.install import (
    Origin,
    Package,
    Review,
    check_free,
    install_files,
    package_directory,
    package_name,
)
from stringd.runtime.packages.installed import MAIN_FILE
from stringd.runtime.packages.mcp_app import (
    MOUNT_FILE,
    SCHEME,
    Mount,
    arguments_of,
    document_of,
    with_ids,
)
from stringd.runtime.packages.mcp_servers import (
    ServerKey,
    action_error,
    call_tool,
    describe_server,
    read_resource,
    stop_app,
)
from stringd.runtime.packages.stored_names import Choice
from stringd.runtime.topics.location import Page
from stringd.runtime.variables import scopes
from stringd.system.sandbox import Level
from stringd.wire.topic import Topic

if TYPE_CHECKING:
    from mcp import Client

    from stringd.actions.run import ToolCaller
    from stringd.runtime.topics.call import Call


_HEADER: Final = re.compile(r"(?P<name>[!#$%&'*+.^_`|~0-9A-Za-z-]+):[ \t]*(?P<value>[^\r\n\0]*)")


async def mount_server(
    call: "Call",
    raw_name: str,
    mount: Mount,
    *,
    confirmed: bool = True,
    names: Choice | None = None,
    review: Review | None = None,
) -> Package:
    """Start a server once, write down what it offers, and install it as an app.

    Raises `CommandError`.
    """
    name, home = package_name(raw_name), call.session.user.home
    source = mount.url or " ".join(mount.command)
    origin = Origin(source, f"mcp {source}", _typed(name, mount))
    package = Package(name, "app", origin, parse(""), confirmed, names)
    # The server is started with what is stored for its name, so that must be its own.
    await asyncio.to_thread(check_free, home, package)
    try:
        found = await _use(call, name, mount, _described, with_names=confirmed)
    except ActionError as error:
        await stop_app(call.services.mcp, call.session.user.home, name)
        raise CommandError("COMMAND_UNSUPPORTED", error.message) from error
    title, instructions, tools, resources = found
    mount = msgspec.structs.replace(
        mount,
        title=title,
        instructions=instructions,
        tools=with_ids(tools),
        resources=tuple(resources),
    )
    text = document_of(name, mount)
    package = package._replace(document=parse(text))
    content = msgspec.json.format(msgspec.json.encode(mount), indent=2)
    files = {MAIN_FILE: text.encode(), MOUNT_FILE: content}
    await asyncio.to_thread(install_files, home, package, files, review)
    return package


def _typed(name: str, mount: Mount) -> str:
    """What mounts the same server again, behind `/install`."""
    words = ["--mcp", name]
    if mount.sandbox is not Level.WORKSPACE:
        words += ["--sandbox", mount.sandbox]
    if mount.network != "open":
        listed = mount.network if isinstance(mount.network, str) else ",".join(mount.network)
        words += ["--network", listed]
    if mount.url is None:
        return shlex.join([*words, "--", *mount.command])
    headers = [f'-H "{key}: {value}"' for key, value in mount.headers.items()]
    return " ".join([shlex.join([*words, mount.url]), *headers])


def read_header(text: str) -> tuple[str, str] | None:
    """A header as a person types it, `Name: value`; None when it is none."""
    match = _HEADER.fullmatch(text.strip())
    return (match["name"], match["value"]) if match else None


def tool_caller(call: "Call", provenance: Provenance) -> "ToolCaller | None":
    """Who calls the tools of a mounted page; None when the page is not an installed app's."""
    if not isinstance(provenance, InstalledApp):
        return None
    name = provenance.name

    async def ask(tool: str, values: Mapping[str, Value]) -> str:
        mount = await mounted(call, name)
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
        mount = await mounted(call, name)
        known = {each.uri: each.uri for each in mount.resources}
        wanted = known.get(resource) or unquote(resource)
        text = await _use(call, name, mount, lambda client: read_resource(client, wanted))
    except ActionError as error:
        raise CommandError(error.code, error.message) from error
    # A server may pass on text from anywhere.
    return Page(parse(str(text), uri), McpResource(name), public=True)


async def _described(client: "Client") -> Any:
    tools, resources = await describe_server(client)
    about = client.server_info
    title = (about.title or about.name) if about is not None else ""
    return title, client.instructions or "", tools, resources


async def _use(
    call: "Call",
    name: str,
    mount: Mount,
    ask: "Callable[[Client], Awaitable[Any]]",
    *,
    with_names: bool = True,
) -> Any:
    session = call.session
    topic = session.topic
    own = topic.type == "app" and topic.name.partition(":")[0] == name
    key = ServerKey(session.user.home, topic.name if own else name)
    stored = scopes.own(session.user.home, Topic("app", key.topic_name))
    variables = stored if with_names else {}
    mask = NOTHING_HIDDEN
    if mount.url is None:
        environment = command_environment(os.environ, variables, {})
        places = (Path(mount.cwd),) if mount.cwd else ()
        hide = (Path(call.services.data_root),)
        try:
            network = server_network(mount.network)
        except HostListError as error:
            raise ActionError("LOAD_ERROR", f"mcp.json of {name}: {error}") from error
        walls = ServerWalls(mount.sandbox, places, hide, owned=True, network=network)
        spec = ServerSpec("stdio", mount.command, environment, mount.cwd, walls=walls)
    else:
        headers, mask = _headers(mount, variables, name)
        spec = ServerSpec("http", url=mount.url, headers=headers)
    if call.services.settings.show_secrets:
        mask = NOTHING_HIDDEN
    await _permitted(call, mount)
    limit = call.services.settings.cli_action_timeout
    try:
        answer = await call.services.mcp.use(key, spec, ask, limit)
    except McpError as error:
        failure = action_error(error, limit)
        raise ActionError(failure.code, mask(failure.message)) from error
    return mask(answer) if isinstance(answer, str) else answer


async def _permitted(call: "Call", mount: Mount) -> None:
    """An agent of a run is asked before a server is started or a private address is connected to.

    Raises `CommandError` or `ActionError`.
    """
    permission = call.caller.permission
    if permission is None:
        return
    if mount.url is None:
        await permission.command(shlex.join(mount.command))
        return
    try:
        target = await call.services.fetcher.resolve(mount.url)
    except FetchError as error:
        raise ActionError("LOAD_ERROR", f"Cannot reach the MCP server: {error}") from error
    if target.reach != "public":
        await permission.address(mount.url, target.addresses[0])


def _headers(mount: Mount, variables: Mapping[str, str], app: str) -> tuple[dict[str, str], Mask]:
    """The headers to send, and what hides the values put into them. Raises `ActionError`."""
    pieces = {name: list(cut(text)) for name, text in mount.headers.items()}
    named = {p.name for text in pieces.values() for p in text if isinstance(p, Variable)}
    missing = sorted(name for name in named if name not in variables)
    if missing:
        hint = "\n".join(f"  string app:{app} '/set ${name} = \"...\"'" for name in missing)
        listed = ", ".join(f"${name}" for name in missing)
        raise payload_error(f"Unresolved environment variable(s):\n  {listed}\n\n{hint}")
    filled = {
        name: "".join(
            variables[p.name] if isinstance(p, Variable) else p if isinstance(p, str) else p.raw
            for p in text
        )
        for name, text in pieces.items()
    }
    for name, value in filled.items():
        if not (value.isascii() and value.isprintable()):
            raise payload_error(f"The value of header {name} must be printable ASCII text.")
    return filled, Mask(variables[name] for name in named)


async def mounted(call: "Call", name: str) -> Mount:
    """What is mounted as an app, if that is still what was installed. Raises `ActionError`."""
    home = call.session.user.home
    path = package_directory(home, name) / MOUNT_FILE
    standing = await asyncio.to_thread(record.whole, os.path.realpath(home), name)  # noqa: ASYNC240
    if standing.state != "intact" and path.exists():
        raise ActionError("FILE_NOT_ALLOWED", f"Not started: {record.why_not(standing)}")
    try:
        return msgspec.json.decode(path.read_bytes(), type=Mount)
    except (OSError, msgspec.DecodeError) as error:
        raise ActionError("NOT_FOUND", f"app:{name} is not a mounted MCP server.") from error
