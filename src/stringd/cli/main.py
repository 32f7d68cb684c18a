"""The `stringd` command. A subcommand's module is imported only when it is named."""

import gc
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Final, NamedTuple

from stringd import __version__
from stringd.cli.streams import secure_streams


class Subcommand(NamedTuple):
    """Where a subcommand lives. Its module offers `main(name, argv) -> exit code`."""

    module: str
    summary: str


SUBCOMMANDS: Final = {
    "serve": Subcommand("serve", "run the daemon in the foreground"),
    "up": Subcommand("control", "start the daemon in the background and wait until it answers"),
    "down": Subcommand("control", "stop the daemon"),
    "status": Subcommand("control", "say whether the daemon is running, and what it holds"),
    "doctor": Subcommand("doctor", "check this machine's set-up and say how to fix it"),
    "service": Subcommand("service.command", "start the daemon at login, as a service"),
    "backup": Subcommand("backup.command", "put everything stringd keeps for you into one file"),
    "restore": Subcommand("backup.command", "put back what a backup holds"),
    "import": Subcommand("comma.command", "take over what Comma Agents keeps for you"),
    "completions": Subcommand("shells.command", "print completions for bash, zsh or fish"),
    "man": Subcommand("shells.command", "write the manual pages"),
    "allow": Subcommand("allow", "let file commands reach a directory outside the user's home"),
    "trust": Subcommand("trust", "trust a file, or what a folder offers, with its present content"),
    "sandbox": Subcommand("sandbox", "say which walls there are, and which apps run outside them"),
    "gate": Subcommand("gate", "approve agents' commands in this terminal"),
    "request": Subcommand("request", "ask the gate to run a command"),
    "mcp": Subcommand("mcp", "serve MCP on standard input and output, for coding agents"),
    "acp": Subcommand("acp", "offer strategies as an agent to editors that speak ACP"),
    "run": Subcommand("runs.run", "run a strategy and watch it"),
    "runs": Subcommand("runs.runs", "list, show, resume, continue, stop or delete runs"),
    "ui": Subcommand("page", "open the page in the browser"),
    "top": Subcommand("top.top", "show runs, topics, shells and what waits, live"),
    "keys": Subcommand("runs.keys", "keep, list or remove keys of model providers"),
    "providers": Subcommand("runs.providers", "say which model providers can be used"),
    "models": Subcommand("runs.providers", "list the models of a provider"),
    "mcp-servers": Subcommand("runs.mcp_servers", "list the MCP servers that runs could use"),
    "trash": Subcommand("runs.trash", "list, restore or clear files that agents deleted"),
    "watch": Subcommand("watch", "print what happens in the daemon, as it happens"),
    "new": Subcommand("authors.new", "write an app that works, to change into your own"),
    "dev": Subcommand("authors.dev", "check and show an app again whenever it changes"),
    "sfmd": Subcommand("sfmd", "check, take apart and put together documents"),
    "strategies": Subcommand("runs.strategies", "list strategies, or check a file"),
}


def overview() -> str:
    """What `stringd --help` says."""
    width = max(map(len, SUBCOMMANDS))
    rows = "\n".join(f"  {name:<{width}}  {entry.summary}" for name, entry in SUBCOMMANDS.items())
    return (
        "usage: stringd <command> [options]\n\n"
        "A local daemon for AI agents: they read, run commands and work on tasks;\n"
        "you watch, and approve what matters.\n\n"
        f"commands:\n{rows}\n\n"
        "stringd <command> --help says more. To talk to the daemon: string file:main /help\n"
    )


def main(argv: Sequence[str] | None = None) -> int:
    """Run `stringd` with these arguments and return its exit code."""
    args = list(sys.argv[1:] if argv is None else argv)
    secure_streams()
    if not args or args[0] in ("-h", "--help", "help"):
        print(overview(), end="")
        return 0
    name, *rest = args
    if name in ("-V", "--version"):
        print(f"stringd {__version__}")
        return 0
    entry = SUBCOMMANDS.get(name)
    if entry is None:
        from difflib import get_close_matches  # only for a name that is not one

        close = get_close_matches(name, SUBCOMMANDS, n=1)
        hint = f" Did you mean {close[0]}?" if close else ""
        print(
            f"stringd: unknown command '{name}'.{hint} See stringd --help.",
            file=sys.stderr,
        )
        return 2
    # Loading makes many objects and no garbage; the collector would look through all of them.
    gc.disable()
    module = import_module(f"stringd.cli.{entry.module}")
    gc.enable()
    try:
        code: int = module.main(name, rest)
        sys.stdout.flush()
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # Whoever read our output has seen enough; nothing more may be flushed into it.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    return code


def sfmd() -> int:
    """Run `sfmd`, the short name of `stringd sfmd`."""
    return main(["sfmd", *sys.argv[1:]])
