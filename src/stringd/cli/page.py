"""`stringd ui`: the page in a browser."""

import argparse
import os
import sys
import webbrowser
from collections.abc import Sequence

from stringd.cli.runs.common import add_port, daemon_port, ensure_daemon, fail
from stringd.client.daemon import UsageError


def main(name: str, argv: Sequence[str]) -> int:
    """Open the page; its address is printed either way."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Open the page that shows what agents do and what waits for you. Starts the "
        "daemon if none answers.",
    )
    parser.add_argument("--print", action="store_true", help="print the address, open nothing")
    add_port(parser)
    args = parser.parse_args(argv)
    try:
        port = daemon_port(args)
        ensure_daemon(port)
    except UsageError as error:
        return fail(error)
    print(address(port), flush=True)
    if not args.print and not show(port):
        print("stringd: found no browser to open; visit that address in one", file=sys.stderr)
    return 0


def address(port: int, *words: str) -> str:
    """Where a view of the page is."""
    from urllib.parse import quote

    return f"http://127.0.0.1:{port}/ui/{'/'.join(quote(word, safe='') for word in words)}"


def show(port: int, *words: str) -> bool:
    """Open a view in the browser of this desktop; False where there is none."""
    desktop = any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER"))
    # Without a desktop a browser for terminals would be found, and take ours.
    return (desktop or sys.platform == "darwin") and webbrowser.open(address(port, *words))
