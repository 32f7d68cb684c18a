"""What `stringd gate hosts` asks of ssh: the key a machine shows, and whether all is well there.

Only the owner's command uses this; the gate itself connects through `ssh.py` alone.
"""

import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from stringd.gate.errors import TroubleError
from stringd.gate.hosts import HostEntry
from stringd.gate.ssh import CONNECT_SECONDS, options, unreachable

_PROBE: Final = """{
printf 'login %s\\n' "$(id -un)"
printf 'system %s\\n' "$(uname -srm)"
if [ "$(id -u)" = 0 ]; then echo 'root login'
elif ! command -v sudo >/dev/null; then echo 'root missing'
elif sudo -n true 2>/dev/null; then echo 'root sudo'
else echo 'root password'; fi
exit
}
"""
# More than connecting may take, whatever stands in between.
_SECONDS: Final = CONNECT_SECONDS + 30


class Probe(NamedTuple):
    """What a machine said about itself; `root` is `login`, `sudo`, `password` or `missing`."""

    login: str
    system: str
    root: str


def shown_key(ssh: str, name: str, destination: str, port: int | None) -> str:
    """The key a machine shows. It is asked for nothing else. Raises `TroubleError`."""
    with tempfile.TemporaryDirectory(prefix="stringd-hosts-") as folder:
        known = Path(folder, "known")
        # Any key: this one is for the owner to look at, and no login follows.
        anything = HostEntry(name, destination, "ssh-ed25519 AAAA", port)
        words = [ssh, "-o", "StrictHostKeyChecking=accept-new", "-o", "HashKnownHosts=no"]
        words += ["-o", "PreferredAuthentications=none", *options(anything, known, None)]
        done = _run([*words, "--", destination, "exit"], "")
        with suppress(OSError):
            for line in known.read_text(encoding="ascii", errors="replace").splitlines():
                _, _, key = line.partition(" ")
                return " ".join(key.split()[:2])
    raise TroubleError(unreachable(anything, done.stderr.encode()))


def keys_known_already(ssh: str, destination: str, port: int | None) -> set[str]:
    """The keys that the user's own `known_hosts` files have for an address."""
    place = [] if port is None else ["-p", str(port)]
    found = _settings(_run([ssh, "-G", *place, "--", destination], "").stdout)
    host, number = found.get("hostname", ""), found.get("port", "22")
    wanted = host if number == "22" else f"[{host}]:{number}"
    keys: set[str] = set()
    for file in found.get("userknownhostsfile", "").split():
        keygen = str(Path(ssh).with_name("ssh-keygen"))
        listed = _run([keygen, "-F", wanted, "-f", str(Path(file).expanduser())], "").stdout
        rows = [line.split() for line in listed.splitlines() if not line.startswith("#")]
        keys |= {" ".join(row[1:3]) for row in rows if len(row) >= 3}
    return keys


def probe(ssh: str, entry: HostEntry) -> Probe:
    """Log in as the gate would and look around. Raises `TroubleError`."""
    with tempfile.TemporaryDirectory(prefix="stringd-hosts-") as folder:
        known = Path(folder, "known")
        known.write_text(f"{entry.name} {entry.key}\n", encoding="ascii")
        words = [ssh, *options(entry, known, None), "--", entry.destination, "exec sh"]
        done = _run(words, _PROBE)
    said = _settings(done.stdout)
    if "root" not in said:
        raise TroubleError(unreachable(entry, done.stderr.encode()))
    return Probe(said.get("login", ""), said.get("system", ""), said["root"])


def _settings(text: str) -> Mapping[str, str]:
    """Lines of a name and a value."""
    pairs = (line.partition(" ") for line in text.splitlines())
    return {name: value.strip() for name, _, value in pairs}


def _run(words: list[str], text: str) -> "subprocess.CompletedProcess[str]":
    try:
        return subprocess.run(
            words,
            input=text,
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            encoding="utf-8",
            errors="replace",
        )
    except subprocess.TimeoutExpired:
        raise TroubleError(f"{Path(words[0]).name} did not answer in {_SECONDS} s") from None
    except OSError as error:
        raise TroubleError(f"{words[0]} cannot be run: {error.strerror}") from None
