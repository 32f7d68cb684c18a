"""The backup that is made before an update changes how a data directory is written."""

import os
import secrets
import sys
from pathlib import Path

from stringd.client.daemon import absolute
from stringd.system.data_format import read_format


def back_up(data: Path) -> None:
    """Put everything into a file below `~/.string/backups`. Raises `BackupError` or `OSError`."""
    from stringd.cli.backup.save import save  # only an update needs it
    from stringd.system.files import make_private_directory

    shared = Path(os.path.realpath(absolute("~/.string")))
    folder = shared / "backups"
    make_private_directory(folder)
    number = read_format(data).number
    file = folder / f"before-format-{number + 1}-{secrets.token_hex(4)}.tar.gz"
    save(file, shared, Path(os.path.realpath(data)), replace=False)
    print(
        f"stringd: an earlier version wrote {data}, which is brought up to date now; "
        f"a backup from before is {file}",
        file=sys.stderr,
    )
