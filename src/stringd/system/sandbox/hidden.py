"""The usual places of secrets, of sockets, and of the caches that tools write to."""

import os
import pwd
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from stringd.system.sandbox.spec import TEMPORARY

HIDE_SETTING: Final = "STRINGD_SANDBOX_HIDE"
"""More paths to hide, separated by colons; `~/` is every home of the account."""

SECRETS: Final = (
    # Keys and passwords
    *(".ssh", ".gnupg", ".pki", ".netrc", ".authinfo*", ".password-store", ".local/share/gopass"),
    *(".local/share/keyrings", ".local/share/kwalletd", ".config/op", ".config/1Password"),
    *(".config/Bitwarden*", ".config/keepassxc", ".config/sops", ".config/age", ".vault-token"),
    # Clouds and clusters
    *(".aws", ".azure", ".config/gcloud", ".boto", ".s3cfg", ".config/rclone", ".config/doctl"),
    *(".config/hcloud", ".fly", ".kube", ".docker", ".config/containers", ".terraform.d"),
    # Forges and package registries
    *(
        ".config/gh",
        ".config/glab-cli",
        ".config/hub",
        ".git-credentials",
        ".config/git/credentials",
    ),
    *(".npmrc", ".yarnrc.yml", ".pypirc", ".cargo/credentials*", ".gem/credentials"),
    *(".composer/auth.json", ".config/composer/auth.json", ".m2/settings-security.xml"),
    *(".cache/huggingface/*token*", ".huggingface", ".config/pypoetry/auth.toml"),
    # Databases
    *(".pgpass", ".my.cnf", ".mylogin.cnf"),
    # Browsers and mail
    *(".mozilla", ".thunderbird", ".librewolf", ".waterfox", ".zen", ".config/mozilla"),
    *(".config/google-chrome*", ".config/chromium", ".config/BraveSoftware", ".config/vivaldi*"),
    *(".config/microsoft-edge*", ".config/opera*", ".cache/mozilla", ".cache/google-chrome*"),
    *(".cache/chromium", ".cache/BraveSoftware", ".cache/vivaldi*", ".cache/microsoft-edge*"),
    *(".var/app", "snap/firefox", "snap/chromium", "snap/brave", "snap/thunderbird"),
    # Messengers and wallets
    *(".config/Signal", ".config/Slack", ".config/discord", ".bitcoin", ".electrum", ".ethereum"),
    # Other agents
    *(".claude*", ".config/claude*", ".config/Claude", ".codex", ".gemini", ".qwen", ".copilot"),
    *(".config/github-copilot", ".config/opencode", ".local/share/opencode", ".cursor"),
    *(".config/Cursor", ".config/goose", ".config/amp", ".local/share/amp", ".factory", ".aider*"),
    *(".continue", ".anthropic", ".openai", ".config/anthropic", ".config/openai", ".kiro"),
    *(".config/io.datasette.llm", ".ollama/id_*", ".cody", ".codeium", ".windsurf"),
    # What was typed: passwords are among it
    *(".*_history", ".local/share/fish/fish_history", ".lesshst", ".viminfo"),
    # Our own
    *(".string/daemon", ".string/*.sock", ".string/*.jsonl", ".string/*.json"),
)
"""Relative to home; the last part may be a pattern."""

CACHES: Final = (
    *(".cache", ".npm", ".yarn/berry", ".bun/install/cache", ".local/share/pnpm/store"),
    *(".cargo/registry", ".cargo/git", "go/pkg", ".gradle/caches", ".m2/repository"),
    *(".nuget/packages", ".ivy2/cache", ".gem/cache", ".composer/cache"),
)
"""Relative to home. None is inside another, so that nothing inside can swap one for a link."""

SYSTEM_SOCKETS: Final = ("/run", "/var/run")
SOCKET_SETTINGS: Final = ("XDG_RUNTIME_DIR", "SSH_AUTH_SOCK", "GPG_AGENT_INFO", "DOCKER_HOST")
NEEDED_OF_RUN: Final = ("/run/current-system", "/run/opengl-driver", "/run/booted-system")
"""Where one distribution keeps its programs."""
_MAY_LEAD_TO_RUN: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/etc/hostname")


def homes(environment: Mapping[str, str]) -> tuple[str, ...]:
    """Where the account's files are: what HOME says and what the machine says."""
    found = dict.fromkeys((environment.get("HOME", ""), _registered_home()))
    return tuple(home for home in found if home.startswith("/"))


def hidden_paths(
    environment: Mapping[str, str], more: Iterable[str | os.PathLike[str]] = ()
) -> tuple[str, ...]:
    """Every path to hide: the usual ones, the owner's (`STRINGD_SANDBOX_HIDE`), and `more`."""
    added = [each for each in environment.get(HIDE_SETTING, "").split(":") if each]
    return tuple(
        dict.fromkeys(
            (
                *(f"{home}/{name}" for home in homes(environment) for name in SECRETS),
                *_expanded([*added, *(os.fspath(each) for each in more)], homes(environment)),
                *SYSTEM_SOCKETS,
                *_socket_places(environment),
            )
        )
    )


def is_hidden(path: str, environment: Mapping[str, str]) -> bool:
    """Whether a path is in a place that is usually hidden, whether or not anything is there."""
    patterns = hidden_paths(environment)
    ways = (path, *map(str, Path(path).parents))
    return any(fnmatchcase(way, pattern) for way in ways for pattern in patterns)


def cache_paths(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """The caches that are there, and that are not links to somewhere else."""
    return tuple(
        Path(home, name)
        for home in map(os.path.realpath, homes(environment))
        for name in CACHES
        if os.path.realpath(f"{home}/{name}") == f"{home}/{name}" and Path(home, name).is_dir()
    )


def needed_of_run() -> tuple[Path, ...]:
    """What must stay readable below /run, where files of /etc may lead to."""
    real = [os.path.realpath(path) for path in _MAY_LEAD_TO_RUN]
    led = [path for path in real if path.startswith("/run/")]
    return tuple(path for path in map(Path, (*led, *NEEDED_OF_RUN)) if path.exists())


def own_places(environment: Mapping[str, str]) -> tuple[Path, ...]:
    """What is stringd's own: apps, pages of the user, what is trusted. Never written to from
    inside, also where a whole home is the workspace."""
    found = (Path(home, ".string") for home in homes(environment))
    return tuple(path for path in found if path.is_dir())


def listening_sockets() -> tuple[str, ...]:
    """The Unix sockets with a path that somebody on this machine listens on."""
    try:
        lines = Path("/proc/net/unix").read_text("utf-8", "surrogateescape").splitlines()[1:]
    except OSError:
        return ()
    fields = (line.split(maxsplit=7) for line in lines)
    return tuple({row[7] for row in fields if len(row) == 8 and row[7].startswith("/")})


def _registered_home() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return ""


def _expanded(paths: Iterable[str], all_homes: tuple[str, ...]) -> Iterator[str]:
    for path in paths:
        if path.startswith("~/"):
            yield from (home + path[1:] for home in all_homes)
        elif path.startswith("/"):
            yield path


def _socket_places(environment: Mapping[str, str]) -> Iterator[str]:
    shared = {os.path.realpath(path) for path in (*TEMPORARY, *homes(environment), "/")}
    for name in SOCKET_SETTINGS:
        path = environment.get(name, "").removeprefix("unix://").partition(":")[0]
        # Some machines name a directory here that holds much else; its sockets are found anyway.
        if path.startswith("/") and os.path.realpath(path) not in shared:
            yield path
