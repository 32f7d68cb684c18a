"""`stringd up`, `down` and `status`: the daemon in the background."""

import argparse
import json
import sys
from collections.abc import Sequence

from stringd.cli import string
from stringd.client.daemon import (
    UsageError,
    health,
    last_words,
    parse_port,
    port_from_environment,
)
from stringd.client.http import TransportError

_ABOUT = {
    "up": "Start the daemon in the background and wait until it answers. Its state is in "
    "~/.string/daemon unless STRINGD_DATA_DIR is set.",
    "down": "Stop the daemon: running commands get a moment to finish.",
    "status": "Say whether the daemon is running. Exit code 1 when it is not.",
}


def main(name: str, argv: Sequence[str]) -> int:
    """Run one of the three."""
    parser = argparse.ArgumentParser(prog=f"stringd {name}", description=_ABOUT[name])
    parser.add_argument("--port", help="port of the daemon (STRINGD_PORT, else 3100)")
    if name == "up":
        parser.add_argument("--log", action="store_true", help="write logs/stringd.log")
    if name == "status":
        parser.add_argument("--json", action="store_true", help="print it as one JSON object")
    args = parser.parse_args(argv)
    try:
        port = parse_port("--port", args.port) if args.port else port_from_environment()
    except UsageError as error:
        print(f"stringd: {error}", file=sys.stderr)
        return 1
    try:
        return _control(name, port, args)
    except TransportError as error:
        print(f"stringd: {error}", file=sys.stderr)
        return 1


def _control(name: str, port: int, args: argparse.Namespace) -> int:
    if name == "up":
        code = string.control_start(port, log=args.log, program="stringd")
        if code and not last_words():
            print("To see why: stringd doctor, or stringd serve", file=sys.stderr)
        return code
    if name == "down":
        return string.control_stop(port, program="stringd")
    return _status_json(port) if args.json else string.control_status(port)


def _status_json(port: int) -> int:
    held = health(port)
    print(json.dumps({"running": held is not None, "port": port, **(held or {})}))
    return 0 if held is not None else 1
