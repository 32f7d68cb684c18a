"""The system calls a command does not get, as the program the kernel's filter runs."""

EPERM, ENOSYS = 1, 38
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16

# AUDIT_ARCH_*; every number below is (x86_64, aarch64), None where there is no such call.
ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
_COLUMN = {"x86_64": 0, "aarch64": 1}

_REFUSED: "dict[str, tuple[int | None, int | None]]" = {
    "acct": (163, 89),
    "add_key": (248, 217),
    "bpf": (321, 280),
    "chroot": (161, 51),
    "clock_settime": (227, 112),
    "delete_module": (176, 106),
    "fanotify_init": (300, 262),
    "finit_module": (313, 273),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fsopen": (430, 430),
    "fspick": (433, 433),
    "init_module": (175, 105),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "io_uring_setup": (425, 425),
    "ioperm": (173, None),
    "iopl": (172, None),
    "kexec_file_load": (320, 294),
    "kexec_load": (246, 104),
    "keyctl": (250, 219),
    "lookup_dcookie": (212, 18),
    "mount": (165, 40),
    "mount_setattr": (442, 442),
    "move_mount": (429, 429),
    "nfsservctl": (180, 42),
    "open_by_handle_at": (304, 265),
    "open_tree": (428, 428),
    "open_tree_attr": (467, 467),
    "perf_event_open": (298, 241),
    "pivot_root": (155, 41),
    "quotactl": (179, 60),
    "quotactl_fd": (443, 443),
    "reboot": (169, 142),
    "request_key": (249, 218),
    "setdomainname": (171, 162),
    "sethostname": (170, 161),
    "setns": (308, 268),
    "settimeofday": (164, 170),
    "swapoff": (168, 225),
    "swapon": (167, 224),
    "syslog": (103, 116),
    "umount2": (166, 39),
    "uselib": (134, None),
    "userfaultfd": (323, 282),
    "vhangup": (153, 58),
}
_TRACING: "dict[str, tuple[int | None, int | None]]" = {
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "process_madvise": (440, 440),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "ptrace": (101, 117),
}
_CLONE, _CLONE3, _UNSHARE = (56, 220), (435, 435), (272, 97)
_SOCKET, _SOCKETPAIR, _IOCTL = (41, 198), (53, 199), (16, 29)
_PRLIMIT, _SETPRIORITY = (302, 261), (141, 140)
_OPEN, _OPENAT, _OPENAT2, _TRUNCATE = (2, None), (257, 56), (437, 437), (76, 45)

_NEW_NAMESPACE = 0x7E020000
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCK_KIND = 1, 5, 0xF
_INTO_THE_TERMINAL = (0x5412, 0x541C)  # TIOCSTI and TIOCLINUX type for the user
_EVERY_BIT = 0xFFFFFFFF
_O_ACCMODE, _O_TRUNC = 0o3, 0o1000

_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
# Opcodes: load a word, compare for equality, compare for a bit, compare for at least, mask, return.
_LOAD, _EQUAL, _ANY_BIT, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x45, 0x35, 0x54, 0x06

_X32_CALLS = 0x40000000

Step = tuple[int, int, int, int]


def program(
    machine: str,
    families: "tuple[int, ...]",
    *,
    tracing: bool,
    lone_pairs: bool = False,
    guard_truncation: bool = False,
) -> bytes:
    """A filter for one architecture.

    `families` are the address families a socket may have. `tracing` allows debuggers, for where a
    command sees only its own processes. `lone_pairs` refuses pairs of sockets that could be
    pointed elsewhere. `guard_truncation` covers what Landlock before its third version does not.
    Raises `KeyError` for an architecture without a table.
    """
    column = _COLUMN[machine]
    steps: list[Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, ARCHITECTURES[machine]),
        _errno(ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, _X32_CALLS), _errno(ENOSYS)]
    refused = _REFUSED if tracing else {**_REFUSED, **_TRACING}
    for numbers in refused.values():
        steps += _on(numbers[column], [_errno(EPERM)])
    steps += _on(_CLONE3[column], [_errno(ENOSYS)])
    steps += _on(_CLONE[column], _unless_bits(0, _NEW_NAMESPACE))
    steps += _on(_UNSHARE[column], _unless_bits(0, _NEW_NAMESPACE))
    steps += _on(_IOCTL[column], _unless_value(1, _INTO_THE_TERMINAL))
    steps += _on(_SOCKET[column], _families(families))
    if not tracing:
        # Other processes of the account have limits and priorities too; 0 is the caller's own.
        steps += _on(_PRLIMIT[column], _only_value(0, (0,), _EVERY_BIT))
        steps += _on(_SETPRIORITY[column], _only_value(1, (0,), _EVERY_BIT))
    if lone_pairs:
        kinds = (_SOCK_STREAM, _SOCK_SEQPACKET)
        steps += _on(_SOCKETPAIR[column], _only_value(1, kinds, _SOCK_KIND))
    if guard_truncation:
        steps += _on(_TRUNCATE[column], [_errno(EPERM)])
        steps += _on(_OPENAT2[column], [_errno(ENOSYS)])
        steps += _on(_OPEN[column], _no_truncating_reader(1))
        steps += _on(_OPENAT[column], _no_truncating_reader(2))
    steps.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(_packed(*step) for step in steps)


def _packed(code: int, yes: int, no: int, value: int) -> bytes:
    # Without `struct`, which takes longer to load than this to run.
    return b"%s%c%c%s" % (code.to_bytes(2, "little"), yes, no, value.to_bytes(4, "little"))


def _errno(number: int) -> Step:
    return (_RETURN, 0, 0, _ERRNO | number)


def _argument(index: int) -> Step:
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * index)


def _on(number: "int | None", steps: "list[Step]") -> "list[Step]":
    """Steps for one call; they end with a return, so that the number stays loaded for the rest."""
    return [] if number is None else [(_EQUAL, 0, len(steps), number), *steps]


def _unless_bits(index: int, bits: int) -> "list[Step]":
    return [
        _argument(index),
        (_ANY_BIT, 0, 1, bits),
        _errno(EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]


def _unless_value(index: int, values: "tuple[int, ...]") -> "list[Step]":
    steps = [_argument(index)]
    for value in values:
        steps += [(_EQUAL, 0, 1, value), _errno(EPERM)]
    return [*steps, (_RETURN, 0, 0, _ALLOW)]


def _only_value(index: int, values: "tuple[int, ...]", mask: int) -> "list[Step]":
    steps = [_argument(index), (_AND, 0, 0, mask)]
    for value in values:
        steps += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    return [*steps, _errno(EPERM)]


def _families(allowed: "tuple[int, ...]") -> "list[Step]":
    steps = [_argument(0)]
    for family in allowed:
        steps += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    # Routes and interfaces may be looked up; the other protocols of the family reach the kernel.
    return [
        *steps,
        (_EQUAL, 0, 3, AF_NETLINK),
        _argument(2),
        (_EQUAL, 0, 1, 0),
        (_RETURN, 0, 0, _ALLOW),
        _errno(EPERM),
    ]


def _no_truncating_reader(index: int) -> "list[Step]":
    return [
        _argument(index),
        (_ANY_BIT, 0, 3, _O_TRUNC),
        (_AND, 0, 0, _O_ACCMODE),
        (_EQUAL, 0, 1, 0),
        _errno(EPERM),
        (_RETURN, 0, 0, _ALLOW),
    ]
