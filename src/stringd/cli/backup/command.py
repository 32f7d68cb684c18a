"""`stringd backup` and `stringd restore`."""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path

from stringd.cli.backup.manifest import BackupError, BackupManifest
from stringd.cli.backup.restore import restore
from stringd.cli.backup.save import save
from stringd.cli.streams import visible
from stringd.client.daemon import absolute, data_directory
from stringd.system.data_directory import ForeignDirectoryError
from stringd.system.lineage import started_by_a_daemon
from stringd.system.trust import NotTheOwnerError, TrustError

_ABOUT = {
    "backup": "Put everything that stringd keeps for you into one file: users, topics, runs, apps, "
    "variables, keys of model providers, trust and the gate's log. The daemon may run. The file "
    "holds secrets: only you can read it, and you should keep it so.",
    "restore": "Put back what a backup holds, on this or another machine, under this or another "
    "home. Every file is checked first. The daemon must be stopped.",
}
_NOTES = {
    "backup": "not in it: logs, files outside ~/.string and the data directory, and what a system "
    "keyring keeps.",
    "restore": "paths of users, topics, runs and trust that lead into ~/.string or the data "
    "directory are changed to where these are now.",
}


def main(name: str, argv: Sequence[str]) -> int:
    """Make a backup, or put one back."""
    args = _parser(name).parse_args(argv)
    shared = Path(os.path.realpath(absolute("~/.string")))
    data = Path(os.path.realpath(absolute(args.data_dir or data_directory())))
    try:
        if name == "backup":
            return _backup(args, shared, data)
        if started_by_a_daemon():
            raise NotTheOwnerError
        return _restore(args, shared, data)
    except (BackupError, TrustError, ForeignDirectoryError) as error:
        return _fail(str(error))
    except OSError as error:
        return _fail(f"{error.strerror or error}: {error.filename or args.file}")


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}", description=_ABOUT[name], epilog=_NOTES[name]
    )
    if name == "backup":
        parser.add_argument(
            "file", nargs="?", help="the file to write (stringd-backup-<time>.tar.gz here)"
        )
        replaced = "overwrite the file"
    else:
        parser.add_argument("file", help="a file that stringd backup wrote")
        replaced = "move what is there now aside, and say where it is"
    parser.add_argument("--replace", action="store_true", help=replaced)
    parser.add_argument(
        "--data-dir",
        metavar="DIR",
        help="the daemon's data directory (STRINGD_DATA_DIR, else ~/.string/daemon)",
    )
    parser.add_argument("--json", action="store_true", help="print JSON")
    return parser


def _backup(args: argparse.Namespace, shared: Path, data: Path) -> int:
    now = datetime.now().astimezone().strftime("%Y%m%d-%H%M%S")
    file = Path(absolute(args.file or f"stringd-backup-{now}.tar.gz"))
    manifest = save(file, shared, data, replace=args.replace)
    size, elsewhere = file.stat().st_size, _elsewhere(shared, data)
    if args.json:
        said = {"file": str(file), "bytes": size, "files": len(manifest.entries)}
        print(json.dumps({**said, "elsewhere": elsewhere}))
        return 0
    print(visible(f"{file}: {len(manifest.entries)} files, {size} bytes. It holds your secrets."))
    for home in elsewhere:
        print(visible(f"not in it, because it is elsewhere: {home}"))
    return 0


def _restore(args: argparse.Namespace, shared: Path, data: Path) -> int:
    restored = restore(Path(absolute(args.file)), shared, data, replace=args.replace)
    manifest, aside = restored.manifest, [str(path) for path in restored.put_aside]
    if args.json:
        said = {"files": len(manifest.entries), "made": manifest.made, "dataDir": str(data)}
        print(json.dumps({**said, "putAside": aside}))
        return 0
    print(visible(_summary(manifest, shared, data)))
    for path in aside:
        print(visible(f"what was there before is in {path}; delete it when you do not need it"))
    for home in _elsewhere(shared, data):
        print(visible(f"not restored, because it was elsewhere: {home}"))
    print("start the daemon with: stringd up")
    return 0


def _summary(manifest: BackupManifest, shared: Path, data: Path) -> str:
    where = str(shared) if data.is_relative_to(shared) else f"{shared} and {data}"
    return f"restored {len(manifest.entries)} files of {manifest.made[:16]} to {where}"


def _elsewhere(shared: Path, data: Path) -> list[str]:
    """Homes of users that are neither in `~/.string` nor in the data directory."""
    try:
        users = json.loads((data / "users.json").read_bytes())
        homes = {str(user["home"]) for user in users}
    except (OSError, ValueError, TypeError, KeyError):
        return []
    real = {home: Path(os.path.realpath(home)) for home in homes}
    ours = (shared, data)
    return sorted(
        home for home in homes if not any(real[home].is_relative_to(each) for each in ours)
    )


def _fail(reason: str) -> int:
    print(visible(f"stringd: {reason}"), file=sys.stderr)
    return 1
