"""`stringd service`: install, remove and look at the service."""

import argparse
import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from stringd.cli.service.units import (
    LABEL,
    ServicePlan,
    launchd_agent,
    systemd_service,
    systemd_socket,
)
from stringd.client.daemon import (
    UsageError,
    absolute,
    data_directory,
    parse_port,
    port_from_environment,
)
from stringd.system.files import make_private_directory, write_atomically

_NO_MANAGER = (
    "this machine has no service manager that we know (systemd for users, or launchd). "
    "Nothing was changed. string and stringd mcp start the daemon when they need it; to have it "
    "from the start of the machine, add this line with crontab -e:\n  @reboot {command}"
)


class ServiceError(Exception):
    """The service manager did not do it; `str()` says what to do."""


def main(name: str, argv: Sequence[str]) -> int:
    """Install, remove or look at the service."""
    args = _parser(name).parse_args(argv)
    try:
        plan = _plan(parse_port("--port", args.port) if args.port else port_from_environment())
        if args.print:
            print(_text_of(plan, socket=args.socket), end="")
            return 0
        manager = _manager(plan)
        if args.what == "install":
            return manager.install(plan, socket=args.socket)
        if args.what == "uninstall":
            return manager.uninstall()
        return manager.status() if args.what == "status" else manager.logs()
    except (ServiceError, UsageError) as error:
        print(f"stringd: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        print(f"stringd: {error.strerror}: {error.filename}", file=sys.stderr)
        return 1


def _parser(name: str) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="The daemon as a service of your account: started when you log in, restarted "
        "when it fails. systemd for users, or launchd. Every file written is shown.",
    )
    parser.add_argument("what", choices=("install", "uninstall", "status", "logs"))
    parser.add_argument("--port", help="port of the daemon (STRINGD_PORT, else 3100)")
    parser.add_argument(
        "--socket",
        action="store_true",
        help="systemd opens the port, and the first request starts the daemon; after stringd down "
        "so does the next one",
    )
    parser.add_argument("--print", action="store_true", help="only show what install would write")
    return parser


def _plan(port: int) -> ServicePlan:
    # A service starts with few variables: programs that agents run are found as they are now.
    environment = {
        "PATH": os.environ.get("PATH", os.defpath),
        "STRINGD_DATA_DIR": absolute(data_directory()),
    }
    command = [sys.executable, "-P", "-m", "stringd", "serve", "--port", str(port)]
    return ServicePlan(command, environment, port)


def _text_of(plan: ServicePlan, *, socket: bool) -> str:
    if sys.platform == "darwin":
        return launchd_agent(plan, Launchd.log())
    service = systemd_service(plan)
    return f"{service}\n# {LABEL}.socket\n{systemd_socket(plan)}" if socket else service


def _manager(plan: ServicePlan) -> "Systemd | Launchd":
    if sys.platform == "darwin":
        return Launchd()
    if shutil.which("systemctl") and _call("systemctl", "--user", "show-environment").ok:
        return Systemd()
    raise ServiceError(_NO_MANAGER.format(command=" ".join(plan.command)))


class Called:
    """How a program of the service manager ended."""

    def __init__(self, done: "subprocess.CompletedProcess[str]") -> None:
        self.ok = done.returncode == 0
        self.out = done.stdout.strip()
        self.err = done.stderr.strip()


def _call(*command: str) -> Called:
    return Called(subprocess.run(command, capture_output=True, text=True, check=False))


def _must(*command: str) -> None:
    done = _call(*command)
    if not done.ok:
        raise ServiceError(f"{' '.join(command)} failed: {done.err or done.out}")


def _write(path: Path, text: str) -> None:
    make_private_directory(path.parent)
    write_atomically(path, text.encode(), 0o600)
    print(f"# {path}\n{text}")


class Systemd:
    """The manager of a user's own services on Linux."""

    def __init__(self) -> None:
        base = os.environ.get("XDG_CONFIG_HOME") or absolute("~/.config")
        self._folder = Path(base, "systemd", "user")

    def install(self, plan: ServicePlan, *, socket: bool) -> int:
        _write(self._folder / f"{LABEL}.service", systemd_service(plan))
        if socket:
            _write(self._folder / f"{LABEL}.socket", systemd_socket(plan))
        unit = f"{LABEL}.socket" if socket else f"{LABEL}.service"
        _must("systemctl", "--user", "daemon-reload")
        _must("systemctl", "--user", "enable", "--now", unit)
        print(f"{unit} is enabled. To have it without a login: loginctl enable-linger")
        return 0

    def uninstall(self) -> int:
        units = [f"{LABEL}.socket", f"{LABEL}.service"]
        known = [unit for unit in units if (self._folder / unit).exists()]
        if not known:
            print("the service is not installed")
            return 0
        _must("systemctl", "--user", "disable", "--now", *known)
        for unit in known:
            (self._folder / unit).unlink()
            print(f"removed {self._folder / unit}")
        _must("systemctl", "--user", "daemon-reload")
        return 0

    def status(self) -> int:
        path = self._folder / f"{LABEL}.service"
        if not path.exists():
            print("the service is not installed. To install it: stringd service install")
            return 1
        active = _call("systemctl", "--user", "is-active", f"{LABEL}.service").out
        print(f"{path}: {active or 'unknown'}")
        return 0 if active == "active" else 1

    def logs(self) -> int:
        return subprocess.run(
            ["journalctl", "--user", "-u", f"{LABEL}.service", "-n", "200", "--no-pager"],
            check=False,
        ).returncode


class Launchd:
    """The manager of a user's own services on macOS."""

    def __init__(self) -> None:
        self._file = Path(absolute(f"~/Library/LaunchAgents/{LABEL}.plist"))
        self._domain = f"gui/{os.getuid()}"

    @staticmethod
    def log() -> Path:
        return Path(absolute("~/.string/logs/service.log"))

    def install(self, plan: ServicePlan, *, socket: bool) -> int:
        if socket:
            raise ServiceError("--socket needs systemd. Without it the daemon starts at login.")
        make_private_directory(self.log().parent)
        _write(self._file, launchd_agent(plan, self.log()))
        _call("launchctl", "bootout", f"{self._domain}/{LABEL}")
        _must("launchctl", "bootstrap", self._domain, str(self._file))
        return 0

    def uninstall(self) -> int:
        if not self._file.exists():
            print("the service is not installed")
            return 0
        _call("launchctl", "bootout", f"{self._domain}/{LABEL}")
        self._file.unlink()
        print(f"removed {self._file}")
        return 0

    def status(self) -> int:
        running = _call("launchctl", "print", f"{self._domain}/{LABEL}").ok
        print(f"{self._file}: {'loaded' if running else 'not loaded'}")
        return 0 if running else 1

    def logs(self) -> int:
        try:
            print(self.log().read_text("utf-8", "replace")[-100_000:], end="")
        except FileNotFoundError:
            raise ServiceError(f"there is no log at {self.log()} yet") from None
        return 0
