"""What the runtime is told by whoever assembles it."""

from pathlib import Path
from typing import Final, NamedTuple

GITHUB_API: Final = "https://api.github.com"


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
    github_api: str = GITHUB_API
    action_sandbox: str = "open"
    """How far commands of actions reach."""
