"""`stringd` with another sudo than the machine's: python with_sudo.py PATH-OF-SUDO ARGUMENTS…"""

import sys
from collections.abc import Mapping

import stringd.gate.requests
from stringd.cli.main import main
from stringd.gate.program import ShownProgram


def run() -> int:
    sudo = sys.argv[1]

    def find_sudo(_: Mapping[str, str]) -> ShownProgram:
        return ShownProgram("sudo", sudo, sudo)

    setattr(stringd.gate.requests, "find_sudo", find_sudo)  # noqa: B010  (not its export)
    return main(sys.argv[2:])


if __name__ == "__main__":
    sys.exit(run())
