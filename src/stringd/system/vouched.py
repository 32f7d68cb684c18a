"""What a client says about the environment it was started in, for the shells it asks for.

Names are listed one by one: tokens, passwords and keys are never among them. `string` is started
often and imports this, so nothing slow is imported here.
"""

from collections.abc import Mapping
from types import MappingProxyType

VOUCHED_NAMES = frozenset(
    (
        *("PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "LANGUAGE", "TZ", "TMPDIR"),
        *("EDITOR", "VISUAL", "SSH_AUTH_SOCK", "GNUPGHOME", "DISPLAY", "WAYLAND_DISPLAY"),
        *("XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME"),
        *("XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "DOCKER_HOST", "KUBECONFIG"),
        *("VIRTUAL_ENV", "CONDA_PREFIX", "CONDA_DEFAULT_ENV", "PYENV_ROOT", "PYENV_VERSION"),
        *("NVM_DIR", "NVM_BIN", "RBENV_ROOT", "RBENV_VERSION", "GEM_HOME", "GOPATH", "GOROOT"),
        *("GOBIN", "CARGO_HOME", "RUSTUP_HOME", "RUSTUP_TOOLCHAIN", "JAVA_HOME", "SDKMAN_DIR"),
        *("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"),
    )
)
"""The variables a client may vouch for, besides those of its locale (`LC_…`)."""
NOTHING_VOUCHED: Mapping[str, str] = MappingProxyType({})
"""Of a client that says nothing."""
MAX_CHARACTERS = 16 * 1024
"""Of names and values together: they travel in a header too. Beyond it nothing is taken."""


def vouched(environment: Mapping[str, str]) -> dict[str, str]:
    """Of an environment, what a client vouches for; nothing when it is too much."""
    found = {
        name: value
        for name, value in environment.items()
        if (name in VOUCHED_NAMES or name.startswith("LC_")) and _is_text(value)
    }
    size = sum(len(name) + len(value) for name, value in found.items())
    return found if size <= MAX_CHARACTERS else {}


def _is_text(value: str) -> bool:
    """Whether a value survives the way to the daemon."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in value


def starts_shell(topic: str, cmd: str) -> bool:
    """Whether a command may start a shell, so that its client's environment matters."""
    return topic.startswith("bash") or cmd.lstrip().startswith("/exec")


def with_vouched(own: Mapping[str, str], said: Mapping[str, str]) -> dict[str, str]:
    """A program's own environment, with what a client vouches for in its place.

    What the client does not have, such as a virtual environment, is not taken from our own.
    """
    if not said:
        return dict(own)
    rest = {name: value for name, value in own.items() if name not in vouched({name: value})}
    return {**rest, **said}
