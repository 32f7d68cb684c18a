"""`/help`: what can be typed."""

from typing import Final

from stringd.runtime.packages.installed import Kind, installed
from stringd.runtime.topics.call import Call
from stringd.wire.result import Result

GROUPS: Final = {
    "Navigation": (
        ("/open <path|url|@shortcut>", "Open a document, a #block of it, or a directory"),
        ("/back", "Return to the previous page"),
        ("/refresh", "Load the current page again"),
        ("/nav [name|page|scaffold]", "Show menus and shortcuts"),
        ("/ls [path]", "List a directory"),
        ("/outline [path]", "List headings and blocks with their lines"),
        (
            "/find <text> [--in path]",
            "Search the open document, a path or, with --apps, all apps",
        ),
        ("/close [topic]", "Forget the document, variables and history"),
    ),
    "Actions": (
        ("/act", "List the actions of this page"),
        ("/act.<name> [--flags]", "Run an action"),
        ("/act.<name> --help", "Show what an action takes"),
    ),
    "State": (
        ("/info [@shortcut]", "Show where this topic is"),
        ("/source", "Show the source of the current page"),
        ('/set {var} = "value"', "Set a variable of this topic"),
        ('/set $VAR = "value"', "Set a persistent variable"),
        ("/set", "List variables"),
    ),
    "Editing": (
        ("/edit <path>[#block]", "Show source with line numbers; with a body, replace it"),
        ("/write <path>", "Write the body to a file (--new: only if it does not exist)"),
        ("/append <path>", "Add the body to the end of a file"),
        ("/replace <path>:L5-L10", "Replace lines with the body"),
        ("/replace <path>", "Replace exact text: old, a line ---, new (--all: every one)"),
        ("/verify <path>#<block>", "Show a block as an edit would find it"),
        ("/undo", "Revert this topic's last edit"),
    ),
    "Topics": (
        ("/topics [type]", "List open topics"),
        ("/session close [name]", "Close a topic"),
        ("/events", "List what programs left for you; also .read, .ack and .clear"),
    ),
    "Tools": (("/tool:<name>[.<action>]", "Run a tool without leaving this page"),),
    "Shell": (("/exec <command>", "Run one command in a fresh shell"),),
    "Packages": (
        ("/install <source>", "Install an app or a tool"),
        ("/install --mcp <name> …", "Make an MCP server an app: -- and its command, or its URL"),
        ("/uninstall <name>", "Remove one"),
        ("/update [name] [--check]", "Bring one, or all, to what its source offers now"),
        ("/apps [--json]", "List what is installed: version, source, description"),
    ),
}

_KINDS: Final[tuple[Kind, ...]] = ("app", "tool")


def help_(call: Call) -> Result:
    """Every command in groups, what is installed, then the actions of the open page."""
    width = max(len(form) for entries in GROUPS.values() for form, _ in entries) + 2
    lines = [
        "## String Commands",
        "",
        "Input must start with /. Text after the first line is the body of writing commands.",
    ]
    for group, entries in GROUPS.items():
        lines += ["", f"### {group}"]
        lines += [f"{form:<{width}}{summary}" for form, summary in entries]
    home = call.session.user.home
    packages = [f"{kind}:{name}" for kind in _KINDS for name in sorted(installed(home, kind))]
    if packages:
        lines.append(f"{'Installed':<{width}}{', '.join(packages)}")
    lines += _page_actions(call)
    return Result.page("String Commands", "\n".join(lines))


def _page_actions(call: Call) -> list[str]:
    page = call.session.location.page if call.session.location else None
    if page is None or not page.document.actions:
        return []
    lines = ["", "## Actions on this page"]
    for action in page.document.actions.values():
        flags = [f"--{each.name} <{each.type}>" for each in action.fields if each.required]
        lines.append(" ".join([f"/act.{action.id}", *flags]))
    return lines
