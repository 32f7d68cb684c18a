"""Programs that run code they are given as words or as input, and shells of other machines."""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple


class Interpreter(NamedTuple):
    """Which words of a program are code.

    `letters` are short options that take code, `valued` those that take something else; `options`
    are whole options that take code. `first` says that the first word is code or names it, `own`
    how many words come before that, `every` that any word may be code, `reads` that its input is
    code where no word is.
    """

    instead: str = "a script of the package: ./script {x}"
    letters: str = ""
    valued: str = ""
    options: tuple[str, ...] = ()
    pairs: tuple[str, ...] = ()
    """Options that take two words, none of them code."""
    first: bool = False
    own: int = 0
    every: bool = False
    reads: bool = False
    for_shell: bool = False
    """Whether its code is for a shell, where no mark makes a value safe."""


_OWN_OPTION: Final = "an option of your own, without a value in it"
_SQL: Final = (
    "a script that binds parameters: python3 -c '… execute(\"… ?\", (sys.argv[1],)) …' {x}"
)
_AWK: Final = Interpreter(
    "X={x} awk '… ENVIRON[\"X\"] …' (-v reads escapes in the value)",
    "vef",
    "F",
    ("--assign", "--source", "--file", "--include"),
    first=True,
)
_JQ: Final = Interpreter(
    "jq --arg x {x} '… $x …'",
    "fL",
    options=("--from-file",),
    pairs=("--arg", "--argjson", "--slurpfile", "--rawfile", "--argfile"),
    first=True,
)
_PYTHON: Final = Interpreter("python3 -c '… sys.argv[1] …' {x}", "cm", "WX", first=True, reads=True)
_NODE: Final = Interpreter(
    "node -e '… process.argv[1] …' {x}",
    "epr",
    options=("--eval", "--print", "--require", "--import"),
    first=True,
    reads=True,
)
_PERL: Final = Interpreter("perl -e '… $ARGV[0] …' {x}", "eEMm", "IxC", first=True, reads=True)
_RUBY: Final = Interpreter("ruby -e '… ARGV[0] …' {x}", "er", "ICEK", first=True, reads=True)
_PHP: Final = Interpreter("php -r '… $argv[1] …' {x}", "rBREf", "cd", first=True, reads=True)
_SED: Final = Interpreter(
    "X={x} perl -pe 's/old/$ENV{X}/'",
    "ef",
    "l",
    ("--expression", "--file"),
    first=True,
)
_PSQL: Final = Interpreter(
    "psql -v x={x} <<< \"… :'x' …\"", "cf", "dhpUvFRPLo", ("--command", "--file"), reads=True
)
_MYSQL: Final = Interpreter(_SQL, "e", "uhPDSp", ("--execute", "--init-command"), reads=True)
_SQLITE: Final = Interpreter(
    _SQL, options=("-cmd", "-init", "-c", "-s", "-f"), first=True, own=1, reads=True
)
_QUERIES: Final = Interpreter(_SQL, "eqQf", options=("--query", "--execute", "-q"), reads=True)
_CODE_FIRST: Final = Interpreter(letters="ef", first=True, reads=True)
_EVERY: Final = Interpreter(every=True)
_SHELL_LINES: Final = Interpreter(every=True, for_shell=True)
_TAR: Final = Interpreter(
    _OWN_OPTION,
    "IF",
    options=(
        "--checkpoint-action",
        "--to-command",
        "--use-compress-program",
        "--rsh-command",
        "--rmt-command",
        "--info-script",
        "--new-volume-script",
    ),
)
_COPIES: Final = Interpreter(
    _OWN_OPTION,
    "eoSF",
    options=("--rsh", "--rsync-path"),
)
_GIT: Final = Interpreter(
    "git -C … and a subcommand of your own, then {x}",
    "cx",
    "C",
    ("--exec", "--exec-path", "--config-env", "--upload-pack", "--receive-pack", "--config"),
    first=True,
)
_RUN_BY_ONE: Final[Mapping[str, Interpreter]] = {
    "sort": Interpreter(_OWN_OPTION, options=("--compress-program",)),
    "split": Interpreter(_OWN_OPTION, options=("--filter",)),
    "zip": Interpreter(_OWN_OPTION, options=("-TT", "--unzip-command")),
    "man": Interpreter(_OWN_OPTION, "PH", options=("--pager", "--html")),
    "rg": Interpreter(_OWN_OPTION, options=("--pre", "--hostname-bin")),
    "fd": Interpreter(_OWN_OPTION, "xX", options=("--exec", "--exec-batch")),
    "wget": Interpreter(_OWN_OPTION, "e", options=("--use-askpass", "--execute")),
    "nmap": Interpreter(_OWN_OPTION, options=("--script",)),
    "tcpdump": Interpreter(_OWN_OPTION, "z"),
    "rpm": Interpreter(_OWN_OPTION, "E", options=("--eval", "--pipe")),
    "nc": Interpreter(_OWN_OPTION, "ec"),
    "ncat": Interpreter(_OWN_OPTION, "ec", options=("--exec", "--sh-exec", "--lua-exec")),
    "curl": Interpreter(_OWN_OPTION, "K", options=("--config",)),
    "mutt": Interpreter(_OWN_OPTION, "eF"),
    "hg": Interpreter(_OWN_OPTION, options=("--config",)),
    "ansible": Interpreter(_OWN_OPTION, "a", options=("--args",)),
    "fzf": Interpreter(
        _OWN_OPTION, options=("--preview", "--bind", "--with-shell"), for_shell=True
    ),
    "nix-shell": Interpreter(_OWN_OPTION, "p", options=("--run", "--command"), for_shell=True),
    "nix": Interpreter(_OWN_OPTION, "c", options=("--expr", "--command")),
    "erl": Interpreter(options=("-eval", "-run", "-s")),
    "swipl": Interpreter(letters="gtfs", first=True, reads=True),
}
CODE_OPTIONS: Final = frozenset(
    "--eval --exec --execute --command --commands --cmd --shell-command --sh-exec --run --expr "  # noqa: SIM905
    "--code --preview --pager --editor --rsh --shell".split()
)
"""Options that take code or a command in most programs that have them."""
_STARTS: Final = Interpreter("the program's name itself, then {x}", first=True)

INTERPRETERS: Final[Mapping[str, Interpreter]] = {
    **dict.fromkeys(("awk", "gawk", "mawk", "nawk"), _AWK),
    **dict.fromkeys(("jq", "gojq", "jaq", "yq"), _JQ),
    **dict.fromkeys(("node", "nodejs", "bun", "ts-node", "tsx"), _NODE),
    **dict.fromkeys(("sed", "gsed"), _SED),
    **dict.fromkeys(("mysql", "mariadb"), _MYSQL),
    **dict.fromkeys(("cqlsh", "clickhouse-client", "clickhouse", "trino", "sqlcmd"), _QUERIES),
    **dict.fromkeys(("sqlite3", "sqlite", "duckdb"), _SQLITE),
    **dict.fromkeys(("scp", "sftp", "rsync"), _COPIES),
    **dict.fromkeys(("tar", "gtar", "bsdtar"), _TAR),
    **_RUN_BY_ONE,
    "perl": _PERL,
    "ruby": _RUBY,
    "php": _PHP,
    "psql": _PSQL,
    "git": _GIT,
    **dict.fromkeys(
        "lua luajit Rscript R julia tclsh wish expect gnuplot octave dc bc m4 osascript mongosh "  # noqa: SIM905
        "mongo groovy scala ghc ghci guile racket clojure elixir swift gs xmlstarlet ocaml sbcl "
        "jshell calc qalc tex latex pdftex pdflatex xelatex luatex lualatex".split(),
        _CODE_FIRST,
    ),
    **dict.fromkeys(
        "vim vi view nvim ex ed red emacs make gmake nmake cmake ninja deno pwsh cmd gdb "  # noqa: SIM905
        "powershell lldb less more most socat".split(),
        _EVERY,
    ),
    **dict.fromkeys(
        "tmux screen xterm rxvt urxvt konsole alacritty kitty foot wezterm gnome-terminal "  # noqa: SIM905
        "xfce4-terminal lxterminal x-terminal-emulator parallel watch at batch crontab pdsh pssh "
        "parallel-ssh dsh clush salt salt-ssh salt-call cmd.exe cmd wsl wsl.exe".split(),
        _SHELL_LINES,
    ),
    **dict.fromkeys(
        "npx uvx bunx pipx systemd-run nsenter unshare strace ltrace valgrind setpriv runuser "  # noqa: SIM905
        "pkexec xvfb-run fakeroot prlimit numactl entr coproc rlwrap proot firejail bwrap perf "
        "dbus-run-session start-stop-daemon torsocks proxychains eatmydata ccache distcc setarch "
        "linux32 linux64 cgexec capsh gosu su-exec tini dumb-init chpst softlimit "
        "setuidgid".split(),
        _STARTS,
    ),
    **dict.fromkeys(("faketime", "sshpass", "cpulimit", "dotenv"), _EVERY),
}
_VERSIONED: Final = re.compile(r"(python|pypy|perl|ruby|php|lua|node)[\d.]+")
_FAMILY: Final = {"python": _PYTHON, "pypy": _PYTHON, "lua": _CODE_FIRST}

REMOTE_SHELLS: Final = frozenset(("ssh", "rsh", "mosh", "autossh"))
REMOTE_VALUED: Final = "bcDEeFIiJLlmOopQRSWw"
RUNNING_SUBCOMMANDS: Final[Mapping[str, tuple[str, ...]]] = {
    "npm": ("exec", "x"),
    "pnpm": ("exec", "dlx"),
    "yarn": ("exec", "dlx"),
    "bun": ("x", "run"),
    "uv": ("run", "x"),
    "pipx": ("run",),
    "poetry": ("run",),
    "go": ("run",),
    "redis-cli": ("eval", "eval_ro", "EVAL"),
    "bq": ("query",),
    "yq": ("e", "ea", "eval", "eval-all"),
    "adb": ("shell",),
    "mlr": ("put", "filter"),
}
"""Programs whose word after one of these is a program, or code."""
TEXT_OPTIONS: Final[Mapping[str, tuple[str, ...]]] = {
    "su": ("-c", "--command", "--session-command"),
    "runuser": ("-c", "--command", "--session-command"),
    "script": ("-c", "--command"),
    "flock": ("-c", "--command"),
    "vagrant": ("-c", "--command"),
    "gcloud": ("--command",),
}
"""Programs that hand the word after one of these options to a shell."""

RUN_BY_OPTION: Final = frozenset(
    "tar gtar bsdtar find ssh scp sftp rsync git zip man less more sort split wget gcc cc clang "  # noqa: SIM905
    "g++ make cmake nmap tcpdump mail mutt openssl apt apt-get rpm dpkg docker podman kubectl "
    "socat nc ncat xargs env sudo doas busybox awk gawk mawk nawk sed gsed ffmpeg convert magick "
    "sqlite3 psql mysql hg svn rg fd nice nohup setsid timeout flock stdbuf script su "
    "watch chroot unshare nsenter".split()
)
"""Programs with options that run commands or load code."""


def interpreter(name: str) -> Interpreter | None:
    """What is known of a program that runs code."""
    if name in ("python", "pypy"):
        return _PYTHON
    if found := INTERPRETERS.get(name):
        return found
    versioned = _VERSIONED.fullmatch(name)
    if versioned is None:
        return None
    return _FAMILY.get(versioned[1]) or INTERPRETERS.get(versioned[1])
