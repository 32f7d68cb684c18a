"""Reads what is asked for, makes the walls, and runs the command behind them."""

import os
import sys

from . import family, kernel, rules, seccomp

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

CANNOT_RUN, NOT_FOUND = 126, 127


class LaunchRequest:
    """`w/path r/path h/path name=value … -- command …`"""

    def __init__(self, arguments: "list[str]") -> None:
        end = arguments.index("--")
        self.command = arguments[end + 1 :]
        self.entries = [each for each in arguments[:end] if each[1:2] == "/"]
        pairs = [each.partition("=") for each in arguments[:end] if each[1:2] != "/"]
        self.variables = dict(value.split("=", 1) for name, _, value in pairs if name == "set")
        self.limits = [value.split("=", 1) for name, _, value in pairs if name == "limit"]
        self.options = {name: value for name, _, value in pairs if name not in ("set", "limit")}

    @property
    def frozen(self) -> "list[str]":
        """What read-only mounts keep inside writable places. Landlock alone could do so only by
        keeping new files out of the places around."""
        return rules.kept_inside(self.entries) if "freeze" in self.options else []

    def number(self, name: str) -> "int | None":
        return int(self.options[name]) if name in self.options else None


class Walls:
    """What can be made before the command's process is there to be enclosed."""

    def __init__(self, request: LaunchRequest, temporary: str) -> None:
        version = kernel.landlock_version()
        networked = request.options.get("network") in ("open", "hosts")
        self._ruleset = kernel.landlock_ruleset(
            version,
            rules.handled(version),
            0 if networked else rules.network_rights(version),
            rules.scopes(version),
        )
        frozen = request.frozen
        wanted = [each for each in request.entries if each[1:] not in frozen]
        entries = rules.with_devices([*wanted, f"{rules.WRITE}{temporary}"])
        for path, kind in rules.allowed_places(entries):
            _allow(self._ruleset, path, kind, version)
        self._filter = seccomp.program(
            os.uname().machine,
            (seccomp.AF_INET, seccomp.AF_INET6) if networked else (),
            tracing=False,
            lone_pairs=True,
            guard_truncation=version < rules.GUARDS_TRUNCATION,
        )

    def enclose(self) -> None:
        """Put this process behind them, for good."""
        kernel.drop_capabilities()
        kernel.no_new_privileges()
        kernel.landlock_restrict(self._ruleset)
        os.close(self._ruleset)
        kernel.filter_calls(self._filter)


def main() -> "NoReturn":
    request = LaunchRequest(sys.argv[1:])
    temporary = request.options.get("temporary") or _make_temporary()
    made = "temporary" not in request.options
    try:
        if "cgroup" in request.options:
            _join(request.options["cgroup"], request.limits)
        walls = Walls(request, temporary)
    except OSError as error:
        if made:
            _remove(temporary)
        _give_up(f"the walls cannot be made: {error}", CANNOT_RUN)

    def command() -> "NoReturn":
        _become(request, walls, temporary)

    def clean_up() -> None:
        if made:
            _remove(temporary)

    options = request.options
    os._exit(family.run(command, clean_up, "terminal" in options, "keep-jobs" in options))


def _become(request: LaunchRequest, walls: Walls, temporary: str) -> "NoReturn":
    """Turn this process into the command, behind the walls."""
    try:
        os.environ.update(request.variables)
        os.environ.update(dict.fromkeys(("TMPDIR", "TMP", "TEMP"), temporary))
        kernel.default_signals()
        _limit(request)
        if "freeze" in request.options:
            kernel.unshare(network="proxy" in request.options)
            kernel.freeze_mounts([*_writable(request), temporary], request.frozen)
        if "proxy" in request.options:
            _open_way_out(request)
        walls.enclose()
    except OSError as error:
        _give_up(f"the walls cannot be made: {error}", CANNOT_RUN)
    try:
        os.execvp(request.command[0], request.command)  # noqa: S606 - the command is the point
    except FileNotFoundError:
        _give_up(f"{request.command[0]}: command not found", NOT_FOUND)
    except OSError as error:
        _give_up(f"{request.command[0]}: {error.strerror}", CANNOT_RUN)


def _open_way_out(request: LaunchRequest) -> None:
    from . import way_out

    kernel.raise_loopback()
    # Our parent is the keeper, who stays until nothing is left inside.
    proxy, direct = request.options["proxy"], request.options["direct"]
    os.environ.update(way_out.open_way_out(proxy, os.getppid(), direct))


def _writable(request: LaunchRequest) -> "list[str]":
    return [entry[1:] for entry in request.entries if entry[0] == rules.WRITE]


def _allow(ruleset: int, path: str, kind: str, version: int) -> None:
    # Never through a link: its target has rules of its own, or none.
    try:
        place = os.open(path, os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return
    try:
        format_bits = os.fstat(place).st_mode & 0o170000
        if format_bits != 0o120000:
            directory = format_bits == 0o040000
            kernel.landlock_allow(ruleset, place, rules.rights(kind, version, directory=directory))
    finally:
        os.close(place)


def _limit(request: LaunchRequest) -> None:
    processes, memory = request.number("processes"), request.number("memory")
    if processes is not None:
        # The kernel counts all of the account's; what runs already must not use up the limit.
        kernel.lower_limit(kernel.RLIMIT_NPROC, processes + _running())
    if memory is not None:
        kernel.lower_limit(kernel.RLIMIT_DATA, memory)
    seconds = request.number("cpu")
    if seconds is not None:
        kernel.lower_limit(kernel.RLIMIT_CPU, seconds)


def _running() -> int:
    """All threads of the machine: never fewer than the account's, and read in one go."""
    with open("/proc/loadavg", "rb") as file:
        return int(file.read().split()[3].partition(b"/")[2])


def _join(group: str, limits: "list[list[str]]") -> None:
    """Make a control group and enter it; 0 is whoever writes it."""
    os.mkdir(group)
    for name, value in (*limits, ("cgroup.procs", "0")):
        with open(f"{group}/{name}", "w", encoding="utf-8") as file:
            file.write(value)


def _make_temporary() -> str:
    # Named after the mark of the daemon, so that it is found when nobody was left to remove it.
    owner = kernel.limit(kernel.RLIMIT_LOCKS)
    path = f"/tmp/stringd-{owner:x}-{os.urandom(8).hex()}"  # noqa: S108 - private, unguessable
    os.mkdir(path, 0o700)
    return path


def _remove(path: str) -> None:
    try:
        os.rmdir(path)
    except OSError:
        # Imported only here: most commands leave nothing, and it takes long to load.
        import shutil

        shutil.rmtree(path, ignore_errors=True)


def _give_up(reason: str, code: int) -> "NoReturn":
    sys.stderr.write(f"sandbox: {reason}\n")
    sys.stderr.flush()
    os._exit(code)
