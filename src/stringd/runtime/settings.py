"""What the runtime is told by whoever assembles it."""

from pathlib import Path
from typing import Final, NamedTuple

GITHUB_API: Final = "https://api.github.com"

PACKAGES: Final = "packages"
"""The directory of a home in which `/install` puts packages."""
APPS: Final = "apps"
"""The directory of a home in which the variables of apps are kept."""
WORK_DIRECTORY: Final = ".string-work"
"""In a home: what apps keep. It may hold text from anywhere."""
OWN_PLACES: Final = (PACKAGES, APPS, "tools", "events", "config.json")
"""What is stringd's own in a user's home."""


class RuntimeSettings(NamedTuple):
    """Paths and limits; times are seconds."""

    data_dir: Path
    bash_timeout: float = 120.0
    bash_quiet: float = 10.0
    http_action_timeout: float = 60.0
    cli_action_timeout: float = 120.0
    show_secrets: bool = False
    use_keyring: bool = False
    """Whether persistent variables are kept in the system keyring instead of files."""
    http_loading: bool = True
    """Whether documents may be loaded from the web."""
    diffs: bool = False
    """Whether replies to edits show what changed."""
    overwrite_guard: bool = False
    """Whether a file is overwritten only by a topic that has read it."""
    github_api: str = GITHUB_API
    bash_sandbox: str = "open"
    """How far shells reach at most."""
    action_sandbox: str | None = None
    """How far commands of actions reach; None is the workspace where the machine has walls."""
    action_network: str = "open"
    """What of the network commands of installed apps reach: `open`, `hosts` or `none`."""
