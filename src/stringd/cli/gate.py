"""`stringd gate`: the approver's terminal, and `stringd gate audit`: what it has recorded."""

import argparse
import json
import os
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

from stringd import __version__

if TYPE_CHECKING:
    from _typeshed import SupportsWrite

    from stringd.gate.settings import Settings

_EPILOG: Final = """\
environment:
  STRINGD_GATE_SOCKET          where to listen (else $XDG_RUNTIME_DIR/stringd-gate.sock)
  STRINGD_DATA_DIR             where the audit log is kept, if absolute (default ~/.string)
  STRINGD_GATE_PROMPT_TIMEOUT  seconds a question waits for a key (60)
  STRINGD_GATE_EXEC_TIMEOUT    seconds a command may run (300)
  STRINGD_GATE_MAX_FUTURE      seconds a caller's clock may be ahead (5, at most 60)
  STRINGD_GATE_NOTIFY          command to run when a question waits, e.g. notify-send
  NO_COLOR                     no bold, no dim

keys:
  y approves the command on the screen, Space and PageDown read on in a long one, ? shows
  details, g twice grants exactly this command to its caller for ten minutes, n denies and
  takes a note for the caller if you start typing one, d denies everything this caller asks for
  five minutes, any other letter denies at once. A key counts after 0.4 seconds without any key.
  Ctrl-C ends what runs, or the gate when nothing runs.

stringd gate audit shows what was asked, decided and run, one line a request;
stringd gate audit tail|verify|export for more.
stringd gate hook lets Claude Code and Codex ask for their permissions here.
stringd gate hosts keeps the list of other machines that commands may run on.
stringd gate explain COMMAND says what the gate would do and why, stringd gate grants
[revoke N|all] lists and ends grants, stringd gate rules check checks your rules.
stringd gate passkeys lists the passkeys that may approve in a browser of this machine; they
are added and revoked at the gate: Enter, then p.
"""
_UNSUPPORTED: Final = {
    "--no-confirm-unprivileged": "every command is asked about; that cannot be switched off",
    "--unattended-eligible": "nothing runs unattended; every command is a question here",
    "--pkexec": "privileged commands run through sudo, after a key pressed here",
    "--host": "this gate asks for every machine: stringd gate hosts add NAME USER@ADDRESS",
    "--login": "this gate asks for every machine: stringd gate hosts add NAME USER@ADDRESS",
}


class _Parser(argparse.ArgumentParser):
    def print_help(self, file: "SupportsWrite[str] | None" = None) -> None:
        # The protocol's daemon explains itself on standard error.
        super().print_help(file or sys.stderr)

    def error(self, message: str) -> NoReturn:
        print(f"error: {message}", file=sys.stderr)
        raise SystemExit(1)


def main(name: str, argv: Sequence[str]) -> int:
    """Run `stringd gate` or `stringd gate audit`."""
    if argv and argv[0] == "audit":
        return _audit(argv[1:])
    if argv and argv[0] == "hook":
        from stringd.cli.gate_hook import main as hook

        return hook(argv[1:])
    if argv and argv[0] == "hosts":
        from stringd.cli.gate_hosts import main as hosts

        return hosts(argv[1:])
    if argv and argv[0] == "passkeys":
        from stringd.cli.gate_passkeys import main as passkeys

        return passkeys(argv[1:])
    if argv and argv[0] in ("explain", "grants", "rules"):
        from stringd.cli import gate_rules

        return gate_rules.main(argv[0], argv[1:])
    try:
        return _gate(name, argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1


def _gate(name: str, argv: Sequence[str]) -> int:
    from stringd.gate.app import run
    from stringd.gate.settings import from_environment

    options, unknown = _gate_parser(name).parse_known_args(argv)
    if options.version:
        print(f"stringd {__version__}")
        return 0
    if problem := _problem(options, unknown):
        print(problem, file=sys.stderr)
        return 1
    settings = from_environment(os.environ)
    if options.socket is not None:
        settings = replace(settings, socket=Path(options.socket).absolute())
    if options.notify is not None:
        settings = replace(settings, notify=options.notify)
    if options.rules is not None:
        settings = replace(settings, rules=options.rules.absolute())
    if options.root_rules is not None:
        settings = replace(settings, root_rules=options.root_rules.absolute())
    settings = replace(
        settings,
        arming=options.arming / 1000,
        bell=not options.no_bell,
        verbose=options.verbose,
        allow_stop_busy=options.allow_stop_busy,
    )
    if problem := _unready(settings):
        print(f"error: {problem}", file=sys.stderr)
        return 1
    if options.open:
        from stringd.cli.gate_open import main as open_gate

        return open_gate(str(settings.socket), _without_place(argv))
    return run(settings, dict(os.environ))


def _without_place(argv: Sequence[str]) -> list[str]:
    """The command line without `--open` and `--socket`, which is given by its full path."""
    words = iter(argv)
    rest = []
    for word in words:
        if word == "--socket":
            next(words, None)
        elif word != "--open" and not word.startswith("--socket="):
            rest.append(word)
    return rest


def _unready(settings: "Settings") -> str | None:
    """What keeps a gate with these settings from starting."""
    try:
        shlex.split(settings.notify)
    except ValueError as error:
        return f"the notify command cannot be read: {error}"
    folder = settings.socket.parent
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        return f"{folder} cannot be made: {error.strerror}"
    return None


def _gate_parser(name: str) -> argparse.ArgumentParser:
    parser = _Parser(
        prog=f"stringd {name}",
        description="Asks you, in this terminal, about every command an agent wants to run.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("--socket", metavar="PATH", help="listen here")
    add("--notify", metavar="COMMAND", help="run this when a question waits; never told what it is")
    add("--rules", type=Path, metavar="FILE", help="your own rules (~/.string/gate-rules.toml)")
    add("--root-rules", type=Path, metavar="FILE", help=_ROOT_RULES_HELP)
    add("--open", action="store_true", help="start it in a new tmux pane or window, not here")
    add("--no-bell", action="store_true", help="do not ring the terminal's bell")
    add("--arming", type=_milliseconds, default=400.0, metavar="MS", help=_ARMING_HELP)
    add("--allow-stop-busy", action="store_true", help="let a client stop the gate while it works")
    add("-v", "--verbose", action="store_true", help="log every request on standard error")
    add("-V", "--version", action="store_true", help="print the version")
    # Accepted from habits with other gates: asking about everything is what this one does.
    add("--confirm-unprivileged", action="store_true", help=argparse.SUPPRESS)
    add("--no-unattended-eligible", action="store_true", help=argparse.SUPPRESS)
    add("--forward-agent", action="store_true", help=argparse.SUPPRESS)
    return parser


_ROOT_RULES_HELP: Final = "rules only root can change (/etc/stringd/gate-rules.toml)"
_ARMING_HELP: Final = "a key counts after so much silence (400)"


def _milliseconds(text: str) -> float:
    value = int(text) if text.isascii() and text.isdigit() else -1
    if not 0 <= value <= 10_000:
        raise argparse.ArgumentTypeError(f"{text} is not a number of milliseconds up to 10000")
    return float(value)


def _count(text: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise argparse.ArgumentTypeError(f"{text} is not a number of records")
    return int(text)


def _problem(options: argparse.Namespace, unknown: list[str]) -> str | None:
    for word in unknown:
        option = word.partition("=")[0]
        if option in _UNSUPPORTED:
            return f"error: {option}: {_UNSUPPORTED[option]}"
    if unknown:
        return f"unknown option: {unknown[0]}"
    if options.socket == "":
        # An unset variable must not silently become the usual place.
        return "error: --socket requires a value"
    if options.forward_agent:
        return "error: --forward-agent requires --host (no SSH session in local mode)"
    return None


def _audit(argv: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="stringd gate audit",
        description="Shows and checks the gate's audit log.",
        epilog="tail shows one line a request, --json every record. "
        "verify exits 1 and names the first record that does not hold.",
    )
    parser.add_argument("what", choices=("tail", "verify", "export"), nargs="?", default="tail")
    parser.add_argument("-n", "--lines", type=_count, default=20, help="how many lines tail shows")
    parser.add_argument("--json", action="store_true", help="for scripts")
    parser.add_argument("--file", type=Path, help="another log than the usual one")
    try:
        options = parser.parse_args(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    from stringd.gate.audit import FILE_NAME
    from stringd.gate.settings import data_directory

    path = options.file or data_directory(os.environ) / FILE_NAME
    if not path.exists():
        print(f"stringd gate audit: there is no log at {path}", file=sys.stderr)
        return 1
    try:
        return _AUDIT_COMMANDS[options.what](path, options)
    except BrokenPipeError:
        # The reader of our output has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:
        print(f"stringd gate audit: {path}: {error.strerror}", file=sys.stderr)
        return 1


def _audit_tail(path: Path, options: argparse.Namespace) -> int:
    from collections import deque

    from stringd.gate.audit import records
    from stringd.gate.history import history

    every = (record for _, _, record in records(path))
    if options.json:
        for record in deque(every, maxlen=options.lines):
            print(json.dumps(record))
        return 0
    for row in deque(history(every), maxlen=options.lines):
        print(row)
    return 0


def _audit_verify(path: Path, options: argparse.Namespace) -> int:
    from stringd.gate.audit import verify

    verdict = verify(path)
    if options.json:
        broken = verdict.broken
        found = None if broken is None else {"line": broken.line, "why": broken.why}
        print(json.dumps({"ok": broken is None, "records": verdict.records, "broken": found}))
    elif verdict.broken is None:
        print(f"{verdict.records} records, unbroken: {path}")
    else:
        print(f"line {verdict.broken.line} is broken: {verdict.broken.why}", file=sys.stderr)
        print(f"the {verdict.records} records before it hold: {path}", file=sys.stderr)
    return 0 if verdict.broken is None else 1


def _audit_export(path: Path, options: argparse.Namespace) -> int:  # noqa: ARG001
    from stringd.gate.audit import records

    print(json.dumps([record for _, _, record in records(path) if record is not None], indent=2))
    return 0


_AUDIT_COMMANDS: Final = {
    "tail": _audit_tail,
    "verify": _audit_verify,
    "export": _audit_export,
}
