"""`stringd serve`: the daemon in the foreground."""

import argparse
import errno
import os
import socket
import sys
from collections.abc import Sequence
from typing import Final

from stringd import __version__
from stringd.cli.backup.before_update import back_up
from stringd.cli.backup.manifest import BackupError
from stringd.client.daemon import setting
from stringd.runtime.errors import StorageError
from stringd.server.app import App
from stringd.server.serve import PortInUseError, listeners, run
from stringd.server.settings import VARIABLES, DaemonSettings, SettingsError, load_settings
from stringd.system.data_directory import ForeignDirectoryError, claim, is_listed
from stringd.system.data_format import NewerDataError, bring_up_to_date, refuse_newer
from stringd.system.holder import hold
from stringd.system.keeper import sweep_killed
from stringd.system.leftovers import remove_leftovers
from stringd.system.lineage import mark_descendants
from stringd.system.process_guard import be_unreadable
from stringd.system.processes.orphans import adopt_orphans
from stringd.system.provider_keys import take_provider_keys
from stringd.system.temporary_names import DIRECTORY, noting
from stringd.system.trust import TrustStore

_REASONS: Final = (
    SettingsError,
    PortInUseError,
    StorageError,
    ForeignDirectoryError,
    NewerDataError,
    BackupError,
)
"""Why a daemon does not start; each says what to do."""


def main(name: str, argv: Sequence[str]) -> int:
    """Run the daemon until it is told to stop."""
    args = _parser(name).parse_args(argv)
    try:
        settings = load_settings(os.environ, port=args.port, runs_port=args.runs_port, log=args.log)
        # First: whoever finds the port taken leaves nothing behind.
        with listeners(settings) as sockets:
            _serve(settings, sockets, welcome=args.welcome)
    except _REASONS as error:
        return _fail(str(error))
    except OSError as error:
        where = error.filename or "the data directory"
        return _fail(f"{error.strerror}: {where}{_way_on(error)}")
    return 0


def _serve(settings: DaemonSettings, sockets: list[socket.socket], *, welcome: bool) -> None:
    # Before anything is written there.
    refuse_newer(settings.data_dir)
    claim(settings.data_dir, chosen=bool(setting("DATA_DIR")[1]))
    if not os.access(settings.data_dir, os.W_OK):
        raise SettingsError(f"data directory {settings.data_dir} is not writable")
    take_provider_keys()
    be_unreadable()
    # The owner's list names the directory only if no child of a daemon made it.
    marks = mark_descendants(for_the_owner=is_listed(settings.data_dir, TrustStore()))
    adopt_orphans()
    _announce_other(settings)
    bring_up_to_date(settings.data_dir, __version__, lambda: back_up(settings.data_dir))
    _end_leftovers(settings)
    with noting(settings.data_dir / DIRECTORY):
        run(settings, sockets, lambda app: _ready(app, settings, welcome=welcome), marks)


def _announce_other(settings: DaemonSettings) -> None:
    """Take the data directory, and say so when another daemon uses it too."""
    other = hold(settings.data_dir, settings.port, __version__)
    if other is not None:
        print(
            f"stringd: {settings.data_dir} is used by another daemon too: process {other.pid}, "
            f"port {other.port}, version {other.version}. Each has topics of its own. To use that "
            f"one: STRINGD_PORT={other.port}; to keep apart, choose another STRINGD_DATA_DIR.",
            file=sys.stderr,
        )


def _end_leftovers(settings: DaemonSettings) -> None:
    """End what a daemon that was killed here left running, where its keeper could not, and remove
    the files that it was about to put into place."""
    ended = sweep_killed(settings.data_dir)
    if ended:
        what = "a process" if ended == 1 else f"{ended} processes"
        print(f"stringd: ended {what} of a daemon that was killed", file=sys.stderr)
    for path in remove_leftovers(settings.data_dir / DIRECTORY):
        print(f"stringd: removed {path}, left by a daemon that was killed", file=sys.stderr)


def _way_on(error: OSError) -> str:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return ". Make room there, or choose another directory with STRINGD_DATA_DIR."
    return ""


def _parser(name: str) -> argparse.ArgumentParser:
    width = max(map(len, VARIABLES)) + 2
    variables = "\n".join(f"  {key:<{width}}{text}" for key, text in VARIABLES.items())
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Run the daemon in the foreground, on 127.0.0.1 only. Ctrl-C stops it.",
        epilog=f"environment:\n{variables}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--port", help="port to listen on (STRINGD_PORT, else 3100)")
    parser.add_argument("--runs-port", help="second port for clients that expect runs on their own")
    parser.add_argument("--log", action="store_true", help="write logs/stringd.log")
    parser.add_argument(
        "--welcome", action="store_true", help="prepare a welcome workspace and say what to try"
    )
    return parser


def _ready(app: App, settings: DaemonSettings, *, welcome: bool) -> None:
    users = app.runtime.topics.users
    if len(users):
        print(f"Loaded {len(users)} user(s) from {users.path}")
    print(f"stringd listening on http://127.0.0.1:{settings.port}")
    if welcome:
        from stringd.cli.welcome import prepare

        print(prepare(app, settings))
    sys.stdout.flush()


def _fail(reason: str) -> int:
    print(f"stringd: {reason}", file=sys.stderr)
    return 1
