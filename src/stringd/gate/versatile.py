"""Programs whose words or input can make them run, read or write anything. Pure.

A rule may allow them with exact words only, and those that run what they are given never behind a
pipe.
"""

import re
from typing import Final

_NUMBERED: Final = re.compile(r"[-.]?[0-9][0-9.]*\Z")


def runs_its_input(program: str) -> bool:
    """Whether a program is made to run what it is given, in words or in a pipe."""
    return _listed(program, _WRAPPERS)


def is_shell(program: str) -> bool:
    """Whether a program is a shell."""
    return _listed(program, _SHELLS)


def needs_exact_words(program: str) -> bool:
    """Whether a word of a program can make it run, read or write anything else."""
    return _listed(program, _WRAPPERS) or _listed(program, _VERSATILE)


def _listed(program: str, names: frozenset[str]) -> bool:
    name = program.rpartition("/")[2]
    # python3.11, perl5.36, gcc-12, vim.basic, ld-linux-x86-64.so.2
    stems = {name, _NUMBERED.sub("", name), name.partition(".")[0], name.partition("-")[0]}
    return not names.isdisjoint(stems)


def _split(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SHELLS: Final = _split("sh bash rbash dash zsh ksh mksh ash fish tcsh csh pwsh")
_WRAPPERS: Final = _split(
    """sh bash rbash dash zsh ksh mksh ash fish tcsh csh pwsh busybox toybox env nice ionice nohup
    timeout xargs parallel setsid stdbuf time watch sudo sudoedit doas su runuser pkexec systemd
    systemd-run chroot unshare nsenter flock script strace ltrace gdb lldb perf ssh mosh at batch
    crontab python pypy perl ruby irb node nodejs deno bun npx npm php lua luajit tclsh wish expect
    Rscript R java jshell groovy scala make gmake ninja cmake ansible ansible-playbook docker podman
    nerdctl kubectl lxc machinectl chrt taskset setpriv capsh prlimit numactl cgexec firejail bwrap
    dbus-run-session xvfb fakeroot proot rlwrap screen tmux ld start-stop-daemon run-parts socat nc
    ncat netcat unbuffer faketime catchsegv guile sbcl ocaml ghc erl iex elixir julia psql mysql
    sqlite3 m4 dc bc ed ex setarch linux32 linux64 i386 x86_64 uname26 choom uclampset sg newgrp
    runcon aa-exec logsave chronic ifne mispipe pee vipe zrun run-one sem eatmydata torsocks torify
    proxychains proxychains4 valgrind rr gdbserver entr watchexec hyperfine daemonize dtach abduco
    tini dumb-init catatonit gosu su-exec cpulimit trickle sshpass autossh rsh telnet wine mono
    dotnet just rake gradle mvn ant bazel yarn pnpm corepack tsx poetry vagrant terraform helm runc
    crun ctr qemu elvish nu xonsh osh yash mariadb mongosh redis-cli octave gnuplot gp debugfs ftp
    lftp"""
)
_VERSATILE: Final = _split(
    """git hg svn find fd fdfind tar bsdtar gtar cpio rsync scp sftp sort apt apt-get aptitude dpkg
    rpm dnf yum zypper pacman snap pip pip3 pipx uv gem cargo go curl wget aria2c less more most pg
    man info view vi vim nvim nano emacs ne sed gsed awk gawk mawk nawk original-awk tee dd cp mv
    install ln zip unzip 7z split ip tcpdump nmap openssl gpg gcc cc g++ clang as tc lynx w3m mail
    mutt visudo update-alternatives insmod modprobe mount umount chmod chown setcap setfacl
    zless zmore bzless bzmore xzless xzmore batcat bat rvim vimdiff ctags patch logrotate
    sysctl swapon losetup"""
)
