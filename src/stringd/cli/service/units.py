"""What service managers read. Nothing here touches the machine."""

import plistlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

LABEL = "stringd"


class ServicePlan(NamedTuple):
    """How the daemon is to be started."""

    command: Sequence[str]
    environment: Mapping[str, str]
    port: int


def systemd_service(plan: ServicePlan) -> str:
    """`stringd.service`."""
    # Only a command's `$` names a variable.
    command = " ".join(_quoted(word).replace("$", "$$") for word in plan.command)
    settings = "\n".join(
        f"Environment={_quoted(f'{name}={value}')}" for name, value in plan.environment.items()
    )
    return f"""\
[Unit]
Description=stringd, a local daemon for AI agents

[Service]
ExecStart={command}
{settings}
Restart=on-failure
RestartSec=5
# Commands get two seconds to finish; what remains is ended with the daemon.
TimeoutStopSec=20

[Install]
WantedBy=default.target
"""


def systemd_socket(plan: ServicePlan) -> str:
    """`stringd.socket`: the port is open from login on, and the first request starts the daemon."""
    return f"""\
[Unit]
Description=Port of stringd

[Socket]
ListenStream=127.0.0.1:{plan.port}

[Install]
WantedBy=sockets.target
"""


def launchd_agent(plan: ServicePlan, log: Path) -> str:
    """`stringd.plist`."""
    agent = {
        "Label": LABEL,
        "ProgramArguments": list(plan.command),
        "EnvironmentVariables": dict(plan.environment),
        "RunAtLoad": True,
        "KeepAlive": {"SuccessfulExit": False},
        "StandardErrorPath": str(log),
        "StandardOutPath": str(log),
    }
    return plistlib.dumps(agent).decode()


def _quoted(text: str) -> str:
    """A word of a unit file: nothing in it is a quote, an escape or a specifier."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("%", "%%")
    return f'"{escaped}"'
