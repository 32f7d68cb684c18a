"""The calls to the kernel that Python does not offer.

They are made with what `ctypes` itself is made of: loading that package would take as long as all
the rest of a launch.
"""

import os
import sys
from _ctypes import (
    FUNCFLAG_CDECL,
    FUNCFLAG_USE_ERRNO,
    CFuncPtr,
    Structure,
    _SimpleCData,
    addressof,
    byref,
    dlopen,
    dlsym,
    get_errno,
    sizeof,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    _Number = _SimpleCData[int]
else:
    _Number = _SimpleCData


class _Int(_Number):
    _type_ = "i"


class _Short(_Number):
    _type_ = "H"


class _Word(_Number):
    _type_ = "I"


class _Long(_Number):
    _type_ = "L"


class _CText(_Number):
    _type_ = "z"


class _Address(_Number):
    _type_ = "P"


class _Function(CFuncPtr):
    _flags_ = FUNCFLAG_CDECL | FUNCFLAG_USE_ERRNO
    _restype_ = _Int


class _Library:
    """Functions of the C library, by name."""

    def __init__(self) -> None:
        # None is what is loaded already, 2 is RTLD_NOW.
        self._handle = dlopen(None, 2)  # type: ignore[arg-type]

    def __getattr__(self, name: str) -> "_Function":
        found = _Function(dlsym(self._handle, name))
        setattr(self, name, found)
        return found


_libc = _Library()

SIGINT, SIGQUIT, SIGKILL, SIGPIPE, SIGTTOU, SIGXFSZ = 2, 3, 9, 13, 22, 25
_SIG_DFL, _SIG_IGN = 0, 1

_CLONE_NEWNS, _CLONE_NEWUSER, _CLONE_NEWNET = 0x20000, 0x10000000, 0x40000000
_SIOCSIFFLAGS, _UP_AND_RUNNING = 0x8914, 0x41
_MS_REC_PRIVATE = 0x4000 | 0x40000
_OPEN_TREE, _MOVE_MOUNT, _MOUNT_SETATTR = 428, 429, 442
_AT_FDCWD, _AT_RECURSIVE, _AT_EMPTY_PATH, _CLONE_TREE, _FROM_DESCRIPTOR = -100, 0x8000, 0x1000, 1, 4
_READ_ONLY = 1

_PR_SET_PDEATHSIG, _PR_SET_DUMPABLE, _PR_SET_SECCOMP, _PR_CAPBSET_DROP = 1, 4, 22, 24
_PR_SET_CHILD_SUBREAPER, _PR_SET_NO_NEW_PRIVS = 36, 38
_SECCOMP_MODE_FILTER = 2
_LAST_CAPABILITY = 63

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_CAPABILITY_VERSION = 0x20080522


RLIMIT_CPU, RLIMIT_DATA, RLIMIT_NPROC, RLIMIT_LOCKS = 0, 2, 6, 10


class _PathBeneath(Structure):
    _pack_ = 1
    _fields_ = (("allowed", _Long), ("parent", _Int))


class _Ruleset(Structure):
    _fields_ = (
        ("files", _Long),
        ("network", _Long),
        ("scoped", _Long),
    )


class _Program(Structure):
    _fields_ = (("length", _Short), ("steps", _CText))


def landlock_version() -> int:
    """0 where the kernel has none, or has it switched off."""
    version: int = _libc.syscall(_CREATE_RULESET, None, _Long(0), _VERSION)
    return max(0, version)


def landlock_ruleset(version: int, files: int, network: int, scoped: int) -> int:
    """A descriptor to add rules to. Older kernels take a shorter structure."""
    asked = _Ruleset(files, network, scoped)
    size = 8 if version < 4 else 16 if version < 6 else 24
    return _done(_libc.syscall(_CREATE_RULESET, byref(asked), _Long(size), 0))


def landlock_allow(ruleset: int, place: int, allowed: int) -> None:
    rule = _PathBeneath(allowed, place)
    _done(_libc.syscall(_ADD_RULE, ruleset, _PATH_BENEATH, byref(rule), 0))


def landlock_restrict(ruleset: int) -> None:
    _done(_libc.syscall(_RESTRICT_SELF, ruleset, 0))


def filter_calls(program: bytes) -> None:
    asked = _Program(len(program) // 8, program)
    _prctl(_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, addressof(asked))


def no_new_privileges() -> None:
    _prctl(_PR_SET_NO_NEW_PRIVS, 1)


def drop_capabilities() -> None:
    """For good: root without them is an account like any other that owns many files."""
    for number in range(_LAST_CAPABILITY + 1):
        if _libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0) != 0:
            break
    header = (_Word * 2)(_CAPABILITY_VERSION, 0)
    _done(_libc.capset(header, (_Word * 6)()))


def freeze_mounts(writable: "list[str]", kept: "list[str]") -> None:
    """In a view of the mounts that is this process's own, by `unshare`, make everything else
    read-only, and what is `kept` inside the writable places too.

    Landlock does not judge changes of permissions, owners and times; a read-only mount does.
    """
    _done(_libc.mount(None, b"/", None, _Long(_MS_REC_PRIVATE), None))
    trees = [(path, tree) for path in writable if (tree := _copied(path)) is not None]
    _make_read_only(_AT_FDCWD, b"/")
    for path, tree in trees:
        _put(tree, path)
    for path in kept:
        tree = _copied(path)
        if tree is not None:
            _make_read_only(tree, b"")
            _put(tree, path)
    # Where we are is still the place below what was just put over it.
    os.chdir(os.getcwd())


def unshare(*, network: bool) -> None:
    """Give this process a view of the mounts of its own, and a network without anything in it."""
    wanted = _CLONE_NEWNS | (_CLONE_NEWNET if network else 0)
    if os.geteuid() == 0 and _libc.unshare(wanted) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    # The kernel lets only a readable process say who it is in a new namespace.
    _prctl(_PR_SET_DUMPABLE, 1)
    _done(_libc.unshare(wanted | _CLONE_NEWUSER))
    for name, text in (
        ("setgroups", "deny"),
        ("uid_map", f"{user} {user} 1"),
        ("gid_map", f"{group} {group} 1"),
    ):
        with open(f"/proc/self/{name}", "w", encoding="utf-8") as file:
            file.write(text)


def raise_loopback() -> None:
    """A new network has it, switched off."""
    import _socket
    import fcntl

    held = _socket.socket(_socket.AF_INET, _socket.SOCK_DGRAM)
    asked = b"lo".ljust(16, b"\0") + _UP_AND_RUNNING.to_bytes(2, sys.byteorder)
    fcntl.ioctl(held.fileno(), _SIOCSIFFLAGS, asked.ljust(40, b"\0"))
    held.close()


def _make_read_only(directory: int, path: bytes) -> None:
    asked = (_Long * 4)(_READ_ONLY, 0, 0, 0)
    flags = _AT_RECURSIVE | (0 if path else _AT_EMPTY_PATH)
    size = _Long(sizeof(asked))
    _done(_libc.syscall(_MOUNT_SETATTR, directory, path, flags, asked, size))


def _put(tree: int, path: str) -> None:
    place = os.fsencode(path)
    try:
        _done(_libc.syscall(_MOVE_MOUNT, tree, b"", _AT_FDCWD, place, _FROM_DESCRIPTOR))
    except (FileNotFoundError, NotADirectoryError):
        # It has vanished since it was copied, and nobody can miss it.
        pass
    finally:
        os.close(tree)


def _copied(path: str) -> "int | None":
    """A descriptor of a copy of what is mounted at a path and below; None where nothing is."""
    flags = _CLONE_TREE | _AT_RECURSIVE | os.O_CLOEXEC
    try:
        return _done(_libc.syscall(_OPEN_TREE, _AT_FDCWD, os.fsencode(path), flags))
    except (FileNotFoundError, NotADirectoryError):
        return None


def limit(kind: int) -> int:
    """The highest that this process may have."""
    now = (_Long * 2)()
    _done(_libc.getrlimit(kind, now))
    return int(now[1])


def lower_limit(kind: int, wanted: int) -> None:
    """For good. A limit that is already lower stays."""
    limit_now = min(wanted, limit(kind))
    _done(_libc.setrlimit(kind, (_Long * 2)(limit_now, limit_now)))


def die_with_parent() -> None:
    _prctl(_PR_SET_PDEATHSIG, SIGKILL)


def adopt_orphans() -> None:
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def be_unreadable() -> None:
    """Children of the same account may not trace this process or read its memory."""
    _prctl(_PR_SET_DUMPABLE, 0)


def ignore_keyboard() -> None:
    """What is typed on the terminal is for the command."""
    for number in (SIGINT, SIGQUIT):
        _libc.signal(number, _Address(_SIG_IGN))


def take_terminal_silently() -> None:
    """Moving to the front of a terminal from behind would stop this process otherwise."""
    _libc.signal(SIGTTOU, _Address(_SIG_IGN))


def default_signals() -> None:
    """Undo what we and the interpreter ignore."""
    for number in (SIGINT, SIGQUIT, SIGPIPE, SIGTTOU, SIGXFSZ):
        _libc.signal(number, _Address(_SIG_DFL))


def _prctl(option: int, value: int, more: int = 0) -> None:
    _done(_libc.prctl(option, _Long(value), _Long(more), 0, 0))


def _done(result: int) -> int:
    if result < 0:
        number = get_errno()
        raise OSError(number, os.strerror(number))
    return result
