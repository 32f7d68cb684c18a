"""`stringd gate passkeys`: which passkeys may approve. They are added and revoked at the gate."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from typing import Final

_EPILOG: Final = """\
At the gate, Enter and then p opens the list there: a adds a passkey, its digit revokes it.
That is not possible from here, because an agent could do it too. Each gate asks at its start
whether the passkeys of this list count.
"""


def main(argv: Sequence[str]) -> int:
    """Run `stringd gate passkeys`."""
    from stringd.gate.passkeys.passkey import PasskeyError
    from stringd.gate.passkeys.ring import read_passkeys
    from stringd.gate.settings import PASSKEYS_FILE, data_directory

    parser = argparse.ArgumentParser(
        prog="stringd gate passkeys",
        description="Lists the passkeys that may approve in a browser of this machine.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", choices=("list",), nargs="?", default="list", help="the default")
    parser.add_argument("--json", action="store_true", help="for scripts")
    try:
        options = parser.parse_args(argv)
    except SystemExit as done:
        return done.code if isinstance(done.code, int) else 1
    try:
        found = read_passkeys(data_directory(os.environ) / PASSKEYS_FILE)
    except PasskeyError as error:
        print(f"stringd gate passkeys: {error}", file=sys.stderr)
        return 1
    if options.json:
        listed = [
            {"name": each.name, "key": each.fingerprint, "added": each.added} for each in found
        ]
        print(json.dumps({"passkeys": listed}))
        return 0
    for each in found:
        print(each.summary)
    if not found:
        print("no passkey is registered; at the gate, Enter, p and a add one")
    return 0
