"""`stringd gate hook`: coding agents ask for their permissions at the gate."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from difflib import unified_diff
from pathlib import Path
from typing import TYPE_CHECKING, Final

from stringd.cli.own_program import own_program

if TYPE_CHECKING:
    from stringd.gate.hook_settings import Change

_NAMES: Final = {"claude": "Claude Code", "codex": "Codex"}
_EPILOG: Final = """\
Without a command it is the hook itself: it reads a PermissionRequest event on standard
input, asks at the gate and prints the decision. Without a gate, or if nobody answers, it
prints nothing, and the agent asks by itself as before.

  stringd gate hook install claude         Claude Code (settings.json)
  stringd gate hook install codex          Codex (hooks.json); trust it there with /hooks
  stringd gate hook install claude --undo  as it was before
"""
_SECONDS: Final = 590.0


def main(argv: Sequence[str]) -> int:
    """Run `stringd gate hook`."""
    try:
        options = _parser().parse_args(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    if options.what == "install":
        return _install(options)
    return _hook(options.agent)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="stringd gate hook",
        description="Lets coding agents ask for their permissions at the gate.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--agent", choices=tuple(_NAMES), help="which agent runs this hook")
    install = parser.add_subparsers(dest="what", metavar="install").add_parser(
        "install", help="change the agent's settings, after showing what changes"
    )
    install.add_argument("which", choices=tuple(_NAMES))
    install.add_argument("--undo", action="store_true", help="take the setting out again")
    install.add_argument("-y", "--yes", action="store_true", help="do not ask")
    return parser


def _hook(agent: str | None) -> int:
    """Ask at the gate. Whatever goes wrong, the agent asks by itself: it gets no decision."""
    from stringd.client.gate import Gate, GateClientError, build_request
    from stringd.gate.hook import NotAQuestionError, answer, read_question
    from stringd.wire.gate import RequestAction, ResponseError

    try:
        asked = read_question(sys.stdin.buffer.read())
        request = build_request(
            [],
            action=RequestAction.DECIDE,
            privileged=False,
            session=asked.session,
            client=_NAMES.get(agent or "", "an agent"),
            directory=asked.directory,
            tool=asked.tool,
            text=asked.text,
        )
        response = Gate(timeout=_SECONDS).send(request)
    except (NotAQuestionError, GateClientError, ResponseError, OSError) as error:
        print(f"stringd gate hook: no decision: {error}", file=sys.stderr)
        return 0
    print(answer(response), end="")
    return 0


def _install(options: argparse.Namespace) -> int:
    from stringd.gate.errors import RefusalError
    from stringd.gate.hook_settings import install, record, remove, settings_file, write
    from stringd.gate.settings import data_directory

    agent = options.which
    kept = data_directory(os.environ) / f"gate-hook-{agent}.json"
    path = settings_file(agent, os.environ)
    try:
        if options.undo:
            change = remove(path, _command(agent), kept.read_bytes() if kept.exists() else None)
        else:
            change = install(path, _command(agent))
        if not _agrees(change, options):
            return 1
        write(change)
        if options.undo:
            kept.unlink(missing_ok=True)
        elif change.before != change.after:
            _keep(kept, record(change))
    except RefusalError as error:
        print(f"stringd gate hook: {error}", file=sys.stderr)
        return 1
    if not options.undo:
        print(_next_step(agent))
    return 0


def _agrees(change: "Change", options: argparse.Namespace) -> bool:
    """Show what would change, and ask."""
    if change.before == change.after:
        print(f"{change.path}: nothing to change")
        return True
    name = str(change.path)
    rows = unified_diff(_rows(change.before), _rows(change.after), name, name, lineterm="", n=2)
    print("\n".join(rows))
    if change.after is None:
        print(f"{change.path} is removed: it was not there before")
    if options.yes:
        return True
    if not sys.stdin.isatty():
        print("stringd gate hook: nothing was changed; --yes changes it", file=sys.stderr)
        return False
    try:
        return input("Change it? [y/N] ").strip().lower() in ("y", "yes")
    except EOFError:
        return False


def _rows(side: bytes | None) -> list[str]:
    return [] if side is None else side.decode("utf-8", "replace").splitlines()


def _keep(path: Path, data: bytes) -> None:
    """Keep the file as it was before the first of several installations."""
    from stringd.system.files import make_private_directory, write_atomically

    make_private_directory(path.parent)
    write_atomically(path, data, 0o600)


def _command(agent: str) -> str:
    """How the agent starts us."""
    return shlex.join([*own_program(), "gate", "hook", "--agent", agent])


def _next_step(agent: str) -> str:
    if agent == "codex":
        return "Codex runs new hooks only when you trust them: open Codex and type /hooks."
    return "Claude Code asks at the gate from its next session on, whenever a gate runs."
