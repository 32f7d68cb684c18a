"""A sandbox spec as arguments for bubblewrap. Nothing here touches the machine."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from stringd.system.sandbox.launcher import seccomp, way_out
from stringd.system.sandbox.limits import Group, lower_limits
from stringd.system.sandbox.programs import INTERPRETER
from stringd.system.sandbox.spec import Network, SandboxSpec
from stringd.system.sandbox.view import MountAccess, ViewEntry

BASH: Final = "/bin/bash"
_PROXY: Final = "/dev/stringd-proxy"
_WAY_OUT: Final = (INTERPRETER, "-I", "-S", "-c", Path(way_out.__file__).read_text("utf-8"))


class Bubblewrap(NamedTuple):
    """bubblewrap works on this machine."""

    program: str
    machine: str
    locks_namespaces: bool
    """It is new enough to forbid namespaces inside namespaces."""
    keeper: str = ""
    """`setpriv`, which ends a process with its parent; empty where it is missing."""


# What root may write to below /proc with no capability at all: the whole kernel is set there.
_KERNEL_SETTINGS: Final = (
    *("sys", "sysrq-trigger", "irq", "bus", "fs", "acpi", "driver", "scsi", "mtrr", "pressure"),
    *("dynamic_debug", "asound", "tty"),
)

# bubblewrap takes the filter from a descriptor. The shell opens one, so that a caller has nothing
# to pass on but arguments; `-p` keeps it from reading anything the environment names. It also looks
# at every place once more: bubblewrap gives up on one that has vanished or changed its kind since
# the view was made. That may still happen after this look, so the shell stays and repeats the start
# where something made sure that it ends with its parent. What bubblewrap says itself comes to the
# shell, and a word from it means that nothing was started; descriptor 9 is for what runs inside.
_PRELUDE: Final = """
program=$1 group=$2 settings=$3 filter=$4 temporary=$5 stays=$6 count=$7 options=$8
shift 8
places=("${@:1:count}")
shift "$count"
if [ -n "$group" ]; then
  { mkdir "$group" &&
    for each in $settings; do echo "${each#*=}" >"$group/${each%%=*}" || exit 126; done &&
    echo $$ >"$group/cgroup.procs"; } || { echo "sandbox: no control group $group" >&2; exit 126; }
fi
exec 8>&1 9>&2
arrange() {
  mounts=() files=() last=()
  for each in "${places[@]}"; do
    path=${each:1}
    [ -e "$path" ] || continue
    case $each in
      w*) mounts+=(--bind "$path" "$path") ;;
      r*) mounts+=(--ro-bind "$path" "$path") ;;
      o*) if [ -n "$temporary" ]; then mounts+=(--bind "$temporary" "$path")
          else mounts+=(--perms 1777 --tmpfs "$path"); fi ;;
      h*) if [ -d "$path" ]; then mounts+=(--tmpfs "$path") last+=(--remount-ro "$path")
          else files+=(--dev-bind /dev/null "$path"); fi ;;
    esac
  done
  # Hidden directories at the end, because mount points of inner places are made in them.
  mounts+=("${last[@]}" "${files[@]}")
}
blames_a_place() {
  for each in "${places[@]}"; do [[ $said == *" ${each:1}"* ]] && return; done
  return 1
}
start() {
  exec {given}< <(printf %b "$filter")
  exec "$program" --seccomp "$given" "${@:1:options}" "${mounts[@]}" -- "${@:options+1}"
}
arrange
[ -n "$stays" ] || start "$@" 8>&-
for turn in {1..20}; do
  said=$(start "$@" 2>&1 >&8 8>&-)
  status=$?
  [ -n "$said" ] || exit "$status"
  before=${mounts[*]}
  arrange
  [ "${mounts[*]}" != "$before" ] || blames_a_place || break
done
echo "$said" >&2
exit "$status"
"""

_LETTERS: Final = {
    MountAccess.OWN: "o",
    MountAccess.WRITE: "w",
    MountAccess.READ: "r",
    MountAccess.HIDDEN: "h",
}

# Runs inside, as the parent of the command. Signals that ask what is inside to end are not for it.
# Of a child's end a shell knows more than its status only while it is told of it: there it asks
# whether a signal was the cause. What is left of the command's group and would still print has as
# long as without walls; the rest are jobs. Nothing tells a shell of the end of processes that are
# not its own, so it looks for them once a second.
_KEEP_JOBS: Final = """
limits=$1
shift
exec 3>&9 4>&1 9>&- 2>/dev/null
set -m
trap "" HUP INT TERM
said=
trap 'said=$(LC_ALL=C; jobs)' CHLD
(trap - HUP INT TERM CHLD; eval "$limits"; exec "$@") </dev/null 2>&3 3>&- 4>&- &
group=$!
set +m
wait "$group"
status=$?
trap - CHLD
if [ "$status" -gt 128 ] && [ -n "$said" ] && [[ $said != *"Exit $status "* ]]; then
  echo "signal $((status - 128))" >&0
fi
talkers() {
  for each in /proc/[0-9]*/fd/*; do
    [[ $each -ef /proc/$$/fd/3 || $each -ef /proc/$$/fd/4 ]] || continue
    each=${each#/proc/}
    each=${each%%/*}
    read -r line <"/proc/$each/stat" || continue
    set -- ${line##*) }
    [ "$3" = "$group" ] && echo "$each"
  done
}
for turn in {1..11}; do
  kill -0 -- "-$group" || break
  left=$(talkers)
  [ -n "$left" ] || break
  [ "$turn" = 11 ] && kill -KILL $left
  read -r -t 0.05
  [ $? -gt 128 ] || exit "$status"
done
exec 3>&- 4>&-
kill -0 -- -1 || exit "$status"
echo "$status" >&0
while kill -0 -- -1; do
  read -r -t 1
  [ $? -gt 128 ] || exit "$status"
done
exit "$status"
"""


def bubblewrap_argv(
    walls: Bubblewrap,
    spec: SandboxSpec,
    entries: Sequence[ViewEntry],
    command: Sequence[str],
    *,
    variables: Mapping[str, str],
    group: Group | None,
) -> list[str]:
    """`variables` are set inside; `group` is a control group for the shell to make and enter."""
    lowered = lower_limits(spec.limits, grouped=group is not None)
    around = [*_script(_KEEP_JOBS), lowered] if spec.keeps_jobs else _before_command(lowered)
    settings = "" if group is None else " ".join(f"{name}={value}" for name, value in group.limits)
    places = [f"{_LETTERS[each.access]}{each.path}" for each in entries if each.path != "/"]
    options = [
        *_namespaces(walls, spec),
        *_machine(entries),
        *(part for name, value in variables.items() for part in ("--setenv", name, value)),
    ]
    if spec.way_out is not None:
        options += ["--bind", str(spec.way_out.proxy), _PROXY]
        around += [*_WAY_OUT, _PROXY, ",".join(spec.way_out.direct)]
    return [
        *((walls.keeper, "--pdeathsig", "KILL") if walls.keeper else ()),
        *_script(_PRELUDE),
        *(walls.program, "" if group is None else group.path, settings),
        *(_filter(walls.machine), str(spec.temporary or ""), "stays" if walls.keeper else ""),
        *(str(len(places)), str(len(options)), *places, *options),
        *(*around, *command),
    ]


def _script(text: str) -> list[str]:
    return [BASH, "--norc", "--noprofile", "-p", "-c", text, "stringd-sandbox"]


def _before_command(lowered: str) -> list[str]:
    return ["/bin/sh", "-c", f'exec 2>&9 9>&-; {lowered or ":"}; exec "$@"', "sh"]


def _filter(machine: str) -> str:
    families = (seccomp.AF_UNIX, seccomp.AF_INET, seccomp.AF_INET6)
    return "".join(f"\\x{byte:02x}" for byte in seccomp.program(machine, families, tracing=True))


def _namespaces(walls: Bubblewrap, spec: SandboxSpec) -> Iterator[str]:
    yield from ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-cgroup-try")
    if walls.locks_namespaces:
        yield "--disable-userns"
    if spec.network is not Network.OPEN:
        yield "--unshare-net"
    yield from ("--cap-drop", "ALL", "--die-with-parent")
    if not spec.terminal:
        yield "--new-session"


def _machine(entries: Sequence[ViewEntry]) -> Iterator[str]:
    """What the places of a view are put into."""
    writable = any(entry.path == "/" and entry.access is MountAccess.WRITE for entry in entries)
    yield from ("--bind" if writable else "--ro-bind", "/", "/")
    yield from ("--dev", "/dev", "--proc", "/proc")
    for name in _KERNEL_SETTINGS:
        yield from ("--ro-bind-try", f"/proc/{name}", f"/proc/{name}")
