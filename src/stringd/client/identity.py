"""Who a client acts as, where the daemon is, and which directory the client vouches for."""

import os
from pathlib import Path
from typing import NamedTuple

from stringd.client.daemon import chosen_user, default_home, port_from_environment


class ClientIdentity(NamedTuple):
    """The user a client acts as. `home_chosen` tells a home somebody asked for from the default."""

    user: str
    home: str
    home_chosen: bool
    port: int


def identity(
    user: str | None = None, home: str | os.PathLike[str] | None = None, port: int | None = None
) -> ClientIdentity:
    """Arguments first, then `STRINGD_USER`, `STRINGD_HOME` and `STRINGD_PORT`, then defaults.

    The default user is the one `string user use` chose, else `default`.

    Raises `ValueError` for a port that is none or a user id that could not stand in a header,
    `UsageError` for a port in the environment.
    """
    if port is not None and not 0 < port < 65536:
        raise ValueError("a port is a number from 1 to 65535")
    name = user or chosen_user()
    if not name.strip() or not name.isprintable():
        raise ValueError("a user id is printable text")
    chosen = os.fspath(home) if home else os.environ.get("STRINGD_HOME", "").strip()
    place = Path(chosen or default_home(name)).expanduser().absolute()
    return ClientIdentity(
        name, str(place), bool(chosen), port_from_environment() if port is None else port
    )


def make_home(home: str) -> None:
    """Create the home if it is not there; nobody else may read it."""
    Path(home).mkdir(mode=0o700, parents=True, exist_ok=True)


def working_directory() -> str | None:
    """The directory we vouch for; none when it was removed under us."""
    try:
        return str(Path.cwd())
    except OSError:
        return None
