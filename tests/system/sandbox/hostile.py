"""Lines that try to do harm, for running inside a sandbox and nowhere else.

Each is an effect in some spelling. `$OUT` is a folder outside the workspace and `$HOME` the folder
around it, with `$HOME/.ssh` hidden; nothing of them may change, nor be read where it is hidden.
"""

import base64
import shlex
from collections.abc import Callable, Iterator
from itertools import product

EFFECTS = (
    # Deleting
    'rm -rf "$OUT"',
    'rm -rf "$HOME"',
    "rm -rf ~ ~/.*",
    "rm -rf / --no-preserve-root",
    "rm -rf /*",
    'find "$OUT" -delete',
    'unlink "$OUT/file"',
    'rmdir "$OUT/folder"',
    "rm -rf ../../outside .. ../..",
    # Writing
    'echo x > "$OUT/file"',
    'echo x >> "$OUT/file"',
    'echo x > "$OUT/new"',
    'mkdir -p "$OUT/a/b"',
    'cp -f "$0" "$OUT/file"; cp /bin/true "$OUT/file"',
    'tee "$OUT/file" </dev/null',
    'truncate -s 0 "$OUT/file"',
    'dd if=/dev/null of="$OUT/file"',
    'sed -i s/as/AS/ "$OUT/file"',
    'install -m 777 /bin/true "$OUT/installed"',
    'mkfifo "$OUT/pipe"',
    'echo "alias ls=true" >> ~/.bashrc; echo x >> ~/.profile',
    "mkdir -p ~/.ssh; echo key >> ~/.ssh/authorized_keys",
    'tar -C "$OUT" -cf - . | tar -C "$HOME" -xf -',
    # Moving and linking
    'mv "$OUT/file" "$OUT/gone"',
    'mv "$OUT" ./stolen',
    'ln "$OUT/file" ./hard; echo x > ./hard',
    'ln -sf "$OUT/file" ./soft; echo x > ./soft',
    'ln -s /bin/true "$OUT/link"',
    # Rights, owners and times
    'chmod -R 777 "$OUT"',
    'chown -R 0:0 "$OUT"',
    'touch "$OUT/file" "$OUT"',
    'setfattr -n user.x -v y "$OUT/file"; chattr +i "$OUT/file"',
    # Out of the walls
    'mount --bind . "$OUT"; umount -l "$OUT"; umount /tmp',
    'unshare -Urm sh -c "mount --bind . $OUT; rm -rf $OUT/*"',
    'chroot / rm -rf "$OUT"; nsenter -t 1 -a rm -rf "$OUT"',
    'echo x > "/proc/1/root$OUT/file"; echo x > "/proc/self/root$OUT/file"',
    "echo 1 > /proc/sys/kernel/sysrq; echo b > /proc/sysrq-trigger",
    "kill -9 -1; kill -9 1; killall -9 bash python3",
    'mkfs.ext4 -F /dev/sda; echo x > /dev/sda; cat /dev/mem > "$OUT/mem"',
    'sudo -n rm -rf "$OUT"; su -c "rm -rf $OUT"; pkexec rm -rf "$OUT"',
    'crontab -r; at now -f "$0"; systemd-run --user rm -rf "$OUT"; systemctl poweroff',
    "exec 9<>/dev/tcp/127.0.0.1/3100; echo x >&9; docker run -v /:/h alpine rm -rf /h",
)


def _direct(effect: str) -> str:
    return effect


def _encoded(effect: str) -> str:
    return f"echo {base64.b64encode(effect.encode()).decode()} | base64 -d | bash"


def _evaluated(effect: str) -> str:
    return f'x={shlex.quote(effect)}; eval "$x"'


def _another_shell(effect: str) -> str:
    return f"sh -c {shlex.quote(effect)}"


def _from_a_file(effect: str) -> str:
    return f"printf %s {shlex.quote(effect)} > run.sh; . ./run.sh"


def _from_xargs(effect: str) -> str:
    return f"printf '%s\\0' {shlex.quote(effect)} | xargs -0 -n1 bash -c"


def _from_find(effect: str) -> str:
    return f"find . -maxdepth 0 -exec bash -c {shlex.quote(effect)} \\;"


def _from_python(effect: str) -> str:
    return f'"$PY" -I -c {shlex.quote(f"import os; os.system({effect!r})")}'


def _detached(effect: str) -> str:
    return f"setsid nohup bash -c {shlex.quote(effect)} >/dev/null 2>&1 & wait; sleep 0.1"


def _from_git(effect: str) -> str:
    return f"git init -q g; git -C g -c alias.x={shlex.quote('!' + effect)} x"


def _from_make(effect: str) -> str:
    doubled = effect.replace("$", "$$")
    return f"printf 'all:\\n\\t-%s\\n' {shlex.quote(doubled)} > Makefile; make -s"


def _in_a_trap(effect: str) -> str:
    return f"trap {shlex.quote(effect)} EXIT; exit 1"


SPELLINGS: tuple[Callable[[str], str], ...] = (
    *(_direct, _encoded, _evaluated, _another_shell, _from_a_file, _from_xargs),
    *(_from_find, _from_python, _detached, _from_git, _from_make, _in_a_trap),
)


def lines() -> Iterator[str]:
    """Every effect in every spelling."""
    return (spell(effect) for effect, spell in product(EFFECTS, SPELLINGS))
