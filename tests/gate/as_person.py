"""`stringd` whose gate counts as an ordinary person's, also where the tests run as root.

Its sudo runs nothing: what asks for root here is only asked about.
"""

import sys

import stringd.gate.attempts
import stringd.gate.requests
from stringd.cli.main import main
from stringd.gate.program import ShownProgram


def run() -> int:
    setattr(stringd.gate.attempts, "gate_is_root", lambda: False)  # noqa: B010  (not its export)
    nothing = ShownProgram("sudo", "/usr/bin/false", "/usr/bin/false")
    setattr(stringd.gate.requests, "find_sudo", lambda _: nothing)  # noqa: B010  (see above)
    return main(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(run())
