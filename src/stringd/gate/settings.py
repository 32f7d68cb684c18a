"""What the owner may set, from the environment and the command line; never from a request."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stringd.gate.arming import ARMING_SECONDS
from stringd.gate.validate import DEFAULT_MAX_FUTURE_SECONDS
from stringd.wire.gate import gate_directory, socket_path

DEFAULT_PROMPT_SECONDS: Final = 60
DEFAULT_EXEC_SECONDS: Final = 300
MAX_ALLOWED_FUTURE: Final = 60
ROOT_RULES: Final = Path("/etc/stringd/gate-rules.toml")
OWN_RULES: Final = "gate-rules.toml"
PASSKEYS_FILE: Final = "gate-passkeys.json"


@dataclass(frozen=True, slots=True)
class Settings:
    socket: Path
    data_dir: Path
    prompt_timeout: int = DEFAULT_PROMPT_SECONDS
    exec_timeout: int = DEFAULT_EXEC_SECONDS
    max_future: int = DEFAULT_MAX_FUTURE_SECONDS
    arming: float = ARMING_SECONDS
    bell: bool = True
    notify: str = ""
    allow_stop_busy: bool = False
    verbose: bool = False
    # Rules of the machine, which only root can change, and those of the person.
    root_rules: Path = ROOT_RULES
    rules: Path = Path("/nonexistent")


def whole_seconds(text: str | None, default: int) -> int:
    """A positive whole number of seconds; anything else is the default."""
    if text is not None and text.isascii() and text.isdigit() and 0 < int(text) < 10**6:
        return int(text)
    return default


def data_directory(env: Mapping[str, str]) -> Path:
    """Where the audit log is kept: `~/.string`, or the absolute path in `STRINGD_DATA_DIR`.

    Never relative to where we were started: that is a project, and agents write there.
    """
    return Path(gate_directory(env, os.path.expanduser("~")))  # noqa: PTH111


def from_environment(env: Mapping[str, str]) -> Settings:
    """The settings before the command line has its say."""
    data_dir = data_directory(env)
    path = socket_path(env, os.getuid(), str(data_dir), lambda name: Path(name).is_dir())
    future = env.get("STRINGD_GATE_MAX_FUTURE")
    return Settings(
        socket=Path(path).absolute(),
        data_dir=data_dir,
        prompt_timeout=whole_seconds(
            env.get("STRINGD_GATE_PROMPT_TIMEOUT"), DEFAULT_PROMPT_SECONDS
        ),
        exec_timeout=whole_seconds(env.get("STRINGD_GATE_EXEC_TIMEOUT"), DEFAULT_EXEC_SECONDS),
        max_future=0
        if future == "0"
        else min(whole_seconds(future, DEFAULT_MAX_FUTURE_SECONDS), MAX_ALLOWED_FUTURE),
        notify=env.get("STRINGD_GATE_NOTIFY", ""),
        rules=data_dir / OWN_RULES,
    )
