"""Walls around a command: bubblewrap where it works, else Landlock and seccomp, else none.

spec = standard_spec(Level.WORKSPACE, [workspace], hide=[data_directory])
enclosed = enclose(spec, ["/bin/bash", "-c", text], environment)
process = await asyncio.create_subprocess_exec(*enclosed.argv, env=enclosed.environment, …)
"""

from stringd.system.sandbox.bubblewrap import Bubblewrap
from stringd.system.sandbox.enclose import Enclosed, enclose, standard_spec
from stringd.system.sandbox.hidden import homes, is_hidden
from stringd.system.sandbox.inside import ask_to_end, processes_inside
from stringd.system.sandbox.landlock import Landlock
from stringd.system.sandbox.programs import named_in, on_path
from stringd.system.sandbox.report import Report, report
from stringd.system.sandbox.spec import (
    TEMPORARY,
    Level,
    Limits,
    Network,
    SandboxError,
    SandboxSpec,
    WayOut,
)
from stringd.system.sandbox.walls import Nothing, Walls, available, find_available

__all__ = [
    "TEMPORARY",
    "Bubblewrap",
    "Enclosed",
    "Landlock",
    "Level",
    "Limits",
    "Network",
    "Nothing",
    "Report",
    "SandboxError",
    "SandboxSpec",
    "Walls",
    "WayOut",
    "ask_to_end",
    "available",
    "enclose",
    "find_available",
    "homes",
    "is_hidden",
    "named_in",
    "on_path",
    "processes_inside",
    "report",
    "standard_spec",
]
