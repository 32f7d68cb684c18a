"""`stringd` whose gate counts as an ordinary person's, also where the tests run as root."""

import sys

import stringd.gate.attempts
from stringd.cli.main import main


def run() -> int:
    setattr(stringd.gate.attempts, "gate_is_root", lambda: False)  # noqa: B010  (not its export)
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
