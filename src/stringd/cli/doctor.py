"""`stringd doctor`: what is set up on this machine, what is broken, and how to fix it."""

import argparse
import json
import os
import socket
import sys
from collections.abc import Iterator, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple

from msgspec import UNSET

from stringd import __version__
from stringd.client.daemon import UsageError, health, port_from_environment, setting
from stringd.client.http import TransportError
from stringd.system.data_directory import why_not_used
from stringd.system.peers import kernel_can_say

OLDEST_PYTHON: Final = (3, 11)
DAEMON_HOME: Final = "~/.string/daemon"
"""Where `stringd up` and `string` keep a daemon's state unless told otherwise."""

EXTRAS: Final = {
    "keyring": "keyring",
    "tui": "rich",
}


class Check(NamedTuple):
    """One finding. `state` is ok, off (optional and not set up) or broken."""

    name: str
    state: str
    detail: str
    fix: str | None = None


def main(name: str, argv: Sequence[str]) -> int:
    """Print every finding; exit 1 when something is broken."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Check this machine's set-up and say how to fix it. Exit code 1 when "
        "something is broken; what is optional and not set up is not a failure.",
    )
    parser.add_argument("--json", action="store_true", help="print {ok, checks}")
    parser.add_argument(
        "--ask",
        action="append",
        default=[],
        metavar="PROVIDER",
        help="also let the daemon ask this model provider whether its key works",
    )
    args = parser.parse_args(argv)
    checks = [*examine(), *map(_asked, args.ask)]
    healthy = all(check.state != "broken" for check in checks)
    if args.json:
        print(json.dumps({"ok": healthy, "checks": [check._asdict() for check in checks]}))
    else:
        _show(checks)
    return 0 if healthy else 1


LIKENESS: Final = 0.85
OTHER_VARIABLES: Final = (
    "STRINGD_CONFIG",
    "STRINGD_GATE_EXEC_TIMEOUT",
    "STRINGD_GATE_MAX_FUTURE",
    "STRINGD_GATE_NOTIFY",
    "STRINGD_GATE_PROMPT_TIMEOUT",
    "STRINGD_GATE_SOCKET",
    "STRINGD_HOME",
    "STRINGD_REQUEST_TIMEOUT",
    "STRINGD_RUN_ID",
    "STRINGD_TERM",
    "STRINGD_USER",
)
"""What others of our programs read, or write for what they start."""


def examine() -> Iterator[Check]:
    """Look at everything, the daemon's own needs first."""
    yield _python()
    yield _shell()
    yield from _settings()
    yield from _daemon()
    yield _accounts()
    yield _sandbox()
    yield _data_directory()
    yield from _damage()
    yield _gate()
    yield from _providers()
    yield from _extras()


def _python() -> Check:
    version = ".".join(map(str, sys.version_info[:3]))
    if sys.version_info < OLDEST_PYTHON:
        return Check("python", "broken", version, "install Python 3.11 or newer")
    return Check("python", "ok", version)


def _shell() -> Check:
    if os.access("/bin/bash", os.X_OK):
        return Check("bash", "ok", "/bin/bash")
    return Check("bash", "broken", "/bin/bash cannot be run", "install bash")


def _settings() -> Iterator[Check]:
    from stringd.server.settings import SettingsError, load_settings

    try:
        load_settings(os.environ)
    except SettingsError as error:
        name = str(error).partition(" ")[0]
        yield Check("settings", "broken", str(error), f"correct or unset {name}")
        return
    misspelt = list(_misspelt())
    yield from misspelt
    if not misspelt:
        yield Check("settings", "ok", "every STRINGD_* value can be used")


def _misspelt() -> Iterator[Check]:
    """Names that nobody reads, and that are nearly those of settings."""
    from difflib import get_close_matches

    from stringd.server.settings import VARIABLES

    known = {*VARIABLES, *OTHER_VARIABLES}
    for name in sorted(os.environ):
        ours = name.startswith("STRINGD_")
        near = get_close_matches(name, known, 1, LIKENESS) if ours else []
        if near and name not in known:
            said = f"{name} is not a setting; did you mean {near[0]}?"
            yield Check("settings", "broken", said, f"correct or unset {name}")


def _daemon() -> Iterator[Check]:
    try:
        yield _port(port_from_environment())
    except UsageError:
        # The settings were already found broken, with this very sentence.
        return


def _port(port: int) -> Check:
    try:
        held = health(port)
    except TransportError as error:
        return Check("daemon", "broken", str(error), "choose a free port with STRINGD_PORT")
    if held is not None:
        return _running(port, held)
    with socket.socket() as probe:
        probe.settimeout(2.0)
        taken = probe.connect_ex(("127.0.0.1", port)) == 0
    if taken:
        fix = "stop that program, or choose another port with STRINGD_PORT"
        return Check("daemon", "broken", f"port {port} belongs to another program", fix)
    return Check("daemon", "off", f"not running; port {port} is free", "stringd up")


def _running(port: int, held: Mapping[str, object]) -> Check:
    counts = f"{held['users']} user(s), {held['sessions']} session(s)"
    version = held.get("version", "of an earlier version")
    found = f"answers on port {port}: {counts}"
    if "pid" in held:
        found += f", version {version}, process {held['pid']}, data in {held.get('dataDir')}"
    if version == __version__:
        return Check("daemon", "ok", found)
    fix = f"to use the installed version {__version__}: stringd down, then stringd up"
    return Check("daemon", "ok", found, fix)


def _damage() -> Iterator[Check]:
    from stringd.server.damage import examine as find_damage

    _, told = setting("DATA_DIR")
    found = find_damage(Path(told or DAEMON_HOME).expanduser().absolute())
    for each in found:
        yield Check("damage", "broken", f"{each.path}: {each.what}", each.back)
    if not found:
        yield Check("damage", "ok", "everything in the data directory can be read")


def _accounts() -> Check:
    if kernel_can_say():
        return Check("accounts", "ok", "the kernel says which account opened a connection")
    return Check(
        "accounts",
        "broken",
        "this kernel cannot say who connects: every account of this machine can use the daemon",
        "load the kernel modules tcp_diag and inet_diag, or be alone on this machine",
    )


def _sandbox() -> Check:
    from stringd.system.sandbox import report

    found = report()
    # Weaker than it could be is not broken: without walls agents ask more often.
    state = "off" if found.facts["walls"] == "none" else "ok"
    return Check("sandbox", state, found.sentence, found.fix)


def _data_directory() -> Check:
    _, told = setting("DATA_DIR")
    path = Path(told or DAEMON_HOME).expanduser().absolute()
    if not path.exists():
        parent = next(parent for parent in path.parents if parent.exists())
        if os.access(parent, os.W_OK | os.X_OK):
            return Check("data directory", "ok", f"{path} (made when a daemon starts with it)")
        return Check("data directory", "broken", f"{path} cannot be made", _elsewhere(parent))
    if not path.is_dir():
        return Check("data directory", "broken", f"{path} is not a directory", _elsewhere(path))
    if not os.access(path, os.R_OK | os.W_OK | os.X_OK):
        return Check("data directory", "broken", f"{path} is not writable", f"chmod u+rwx {path}")
    foreign = why_not_used(path, chosen=True)
    if foreign:
        fix = f"if it is yours: stringd trust --data-dir {path}"
        return Check("data directory", "broken", f"{path} is not used: {foreign}", fix)
    return _privacy(path)


def _privacy(path: Path) -> Check:
    mode, fix = path.stat().st_mode, f"chmod 700 {path}"
    if mode & 0o022:
        return Check("data directory", "broken", f"others may write to {path}", fix)
    if mode & 0o055:
        # Every file in it is private all the same.
        return Check("data directory", "ok", f"{path}; others may look inside", fix)
    return Check("data directory", "ok", str(path))


def _elsewhere(path: Path) -> str:
    return f"make {path} writable, or choose another directory with STRINGD_DATA_DIR"


def _gate() -> Check:
    try:
        from stringd.client.gate import Gate, GateClientError, starting
    except ImportError:
        return Check("gate", "off", "not installed")
    gate = Gate()
    start = f"in a terminal of your own: {starting(gate.path)}"
    if not Path(gate.path).exists():
        return Check("gate", "off", f"not running; no socket at {gate.path}", start)
    try:
        gate.ping()
    except (GateClientError, ValueError) as error:
        return Check("gate", "broken", str(error), f"restart it {start}")
    return Check("gate", "ok", f"answers at {gate.path}")


def _providers() -> Iterator[Check]:
    yield Check("models demo", "ok", "built in, needs nothing")
    from stringd.runs.models.providers import KNOWN

    yield _ollama(os.environ.get("OLLAMA_BASE_URL", "").strip() or KNOWN["ollama"].base_url)

    # Those whose address can be set, too: the others are a key away from working.
    settable = {
        name: (*provider.keys, provider.variable)
        for name, provider in KNOWN.items()
        if provider.keys and provider.variable
    }
    for provider, variables in settable.items():
        # Names only: a value is a secret, and a doctor's report gets pasted into issues.
        known = [name for name in variables if os.environ.get(name, "").strip()]
        if known:
            here = f"{' and '.join(known)} set here; a daemon has what was set when it started"
            yield Check(f"models {provider}", "ok", here)
        else:
            wanted = " or ".join(variables)
            yield Check(
                f"models {provider}",
                "off",
                "not set up",
                f"stringd keys set {provider}; or set {wanted} and restart the daemon",
            )


def _asked(provider: str) -> Check:
    """What a provider says to the key that the daemon has for it. Sends the key to it."""
    from stringd.cli.runs.common import named_provider

    name = f"key {provider}"
    try:
        found = named_provider(port_from_environment(), provider)
    except UsageError as error:
        return Check(name, "broken", str(error), "stringd up")
    if found is None:
        return Check(name, "broken", "not a known provider", "stringd providers --all")
    if found.credential_source is UNSET and found.credential_type != "none":
        return Check(name, "broken", "the daemon has no key", f"stringd keys set {provider}")
    if found.error:
        fix = f"stringd keys set {provider}, or see whether its address is right"
        return Check(name, "broken", f"it answers: {found.error}", fix)
    if found.models_source not in ("live", "merged"):
        return Check(name, "off", "it has no list of models to ask for", "try it with a run")
    return Check(name, "ok", f"works; it offers {len(found.models)} models")


def _ollama(address: str) -> Check:
    from stringd.net.fetch import FetchError, FetchRequest, fetch_in_this_thread

    url = f"{address.rstrip('/').removesuffix('/v1')}/api/tags"
    try:
        answered = fetch_in_this_thread(FetchRequest("GET", url, {}, timeout=3.0)).status == 200
    except (FetchError, OSError, ValueError):
        answered = False
    if answered:
        return Check("models ollama", "ok", "answers, needs no key")
    return Check("models ollama", "off", "does not answer", "start Ollama to use it")


def _extras() -> Iterator[Check]:
    for extra, module in EXTRAS.items():
        if find_spec(module) is not None:
            yield Check(f"extra {extra}", "ok", "installed")
        else:
            fix = f"pip install 'stringd[{extra}]' to use it"
            yield Check(f"extra {extra}", "off", "not installed", fix)


def _show(checks: Sequence[Check]) -> None:
    marks = {"ok": "ok", "off": "--", "broken": "FAIL"}
    width = max(len(check.name) for check in checks)
    for check in checks:
        print(f"{marks[check.state]:<4}  {check.name:<{width}}  {check.detail}")
        if check.fix:
            print(f"{'':<{width + 8}}→ {check.fix}")
    broken = sum(check.state == "broken" for check in checks)
    print(f"\n{broken} problem(s) found." if broken else "\nEverything needed is in place.")
