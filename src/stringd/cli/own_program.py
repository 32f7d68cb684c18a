"""How another program starts this one."""

import shutil
import sys
from pathlib import Path


def own_program() -> list[str]:
    """The words in front of a subcommand: by full path, because the other's PATH may differ."""
    own = sys.argv[0] if Path(sys.argv[0]).name == "stringd" else "stringd"
    program = shutil.which(own)
    return [str(Path(program).absolute())] if program else [sys.executable, "-m", "stringd"]
