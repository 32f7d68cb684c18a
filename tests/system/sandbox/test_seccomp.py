"""The filter's program, run step by step as the kernel would, for both processors."""

import struct

import pytest

from stringd.system.sandbox.launcher import seccomp

ALLOWED, EPERM, ENOSYS = "allowed", "EPERM", "ENOSYS"
NUMBERS = {
    "x86_64": {
        "read": 0,
        "open": 2,
        "mmap": 9,
        "ioctl": 16,
        "socket": 41,
        "socketpair": 53,
        "clone": 56,
        "execve": 59,
        "truncate": 76,
        "ptrace": 101,
        "mount": 165,
        "keyctl": 250,
        "openat": 257,
        "unshare": 272,
        "setns": 308,
        "clone3": 435,
        "openat2": 437,
        "io_uring_setup": 425,
    },
    "aarch64": {
        "read": 63,
        "mmap": 222,
        "ioctl": 29,
        "socket": 198,
        "socketpair": 199,
        "clone": 220,
        "execve": 221,
        "truncate": 45,
        "ptrace": 117,
        "mount": 40,
        "keyctl": 219,
        "openat": 56,
        "unshare": 97,
        "setns": 268,
        "clone3": 435,
        "openat2": 437,
        "io_uring_setup": 425,
    },
}
O_TRUNC, O_WRONLY = 0o1000, 1
NEW_USER, NEW_MOUNTS, THREAD = 0x10000000, 0x20000, 0x3D0F00


def judged(program: bytes, architecture: int, number: int, *arguments: int) -> str:
    padded = [*arguments, *(0,) * (6 - len(arguments))]
    data = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    steps = list(struct.iter_unpack("<HBBI", program))
    held = at = 0
    while True:
        code, yes, no, value = steps[at]
        at += 1
        match code:
            case 0x20:
                held = struct.unpack_from("<I", data, value)[0]
            case 0x15:
                at += yes if held == value else no
            case 0x45:
                at += yes if held & value else no
            case 0x35:
                at += yes if held >= value else no
            case 0x54:
                held &= value
            case 0x06:
                return {0x7FFF0000: ALLOWED, 0x50001: EPERM, 0x50026: ENOSYS}[value]
            case other:
                raise AssertionError(other)


@pytest.fixture(params=sorted(NUMBERS))
def machine(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def ask(machine: str, name: str, *arguments: int, program: bytes) -> str:
    number = NUMBERS[machine][name]
    return judged(program, seccomp.ARCHITECTURES[machine], number, *arguments)


def strict(machine: str, *families: int) -> bytes:
    return seccomp.program(machine, families, tracing=False, lone_pairs=True, guard_truncation=True)


@pytest.mark.parametrize("name", ["read", "mmap", "execve", "openat"])
def test_ordinary_calls_are_allowed(machine: str, name: str) -> None:
    assert ask(machine, name, program=strict(machine)) == ALLOWED


@pytest.mark.parametrize("name", ["mount", "keyctl", "setns", "io_uring_setup", "ptrace"])
def test_dangerous_calls_are_refused(machine: str, name: str) -> None:
    assert ask(machine, name, program=strict(machine)) == EPERM


def test_tracing_can_be_allowed_where_nobody_else_is_seen(machine: str) -> None:
    program = seccomp.program(machine, (), tracing=True)
    assert ask(machine, "ptrace", program=program) == ALLOWED
    assert ask(machine, "keyctl", program=program) == EPERM


def test_another_architectures_calls_do_not_exist(machine: str) -> None:
    assert judged(strict(machine), 0x40000003, 1) == ENOSYS


def test_the_second_table_of_x86_does_not_exist() -> None:
    program = strict("x86_64")
    assert judged(program, seccomp.ARCHITECTURES["x86_64"], 0x40000000 | 41, 2) == ENOSYS


def test_threads_are_allowed_and_namespaces_are_not(machine: str) -> None:
    program = strict(machine)
    assert ask(machine, "clone", THREAD, program=program) == ALLOWED
    assert ask(machine, "clone", THREAD | NEW_USER, program=program) == EPERM
    assert ask(machine, "unshare", 0x400, program=program) == ALLOWED
    assert ask(machine, "unshare", NEW_MOUNTS, program=program) == EPERM
    # Its arguments cannot be read, so programs are sent to the call whose arguments can.
    assert ask(machine, "clone3", program=program) == ENOSYS


def test_sockets_are_judged_by_family(machine: str) -> None:
    unix, internet, netlink, virtual_machine = 1, 2, 16, 40
    program = strict(machine, internet)
    assert ask(machine, "socket", internet, program=program) == ALLOWED
    assert ask(machine, "socket", unix, program=program) == EPERM
    assert ask(machine, "socket", virtual_machine, program=program) == EPERM
    assert ask(machine, "socket", netlink, 3, 0, program=program) == ALLOWED
    assert ask(machine, "socket", netlink, 3, 9, program=program) == EPERM
    assert ask(machine, "socket", internet, program=strict(machine)) == EPERM


def test_pairs_of_sockets_must_be_connected_for_good(machine: str) -> None:
    stream, datagram, close_on_exec = 1, 2, 0o2000000
    program = strict(machine)
    assert ask(machine, "socketpair", 1, stream | close_on_exec, program=program) == ALLOWED
    assert ask(machine, "socketpair", 1, datagram | close_on_exec, program=program) == EPERM


def test_limits_and_priorities_of_others_are_not_set(machine: str) -> None:
    prlimit = {"x86_64": 302, "aarch64": 261}[machine]
    architecture = seccomp.ARCHITECTURES[machine]
    assert judged(strict(machine), architecture, prlimit, 0, 7) == ALLOWED
    assert judged(strict(machine), architecture, prlimit, 4321, 7) == EPERM
    setpriority = {"x86_64": 141, "aarch64": 140}[machine]
    assert judged(strict(machine), architecture, setpriority, 0, 0, 5) == ALLOWED
    assert judged(strict(machine), architecture, setpriority, 0, 4321, 5) == EPERM


def test_nothing_is_typed_into_the_users_terminal(machine: str) -> None:
    program = strict(machine)
    assert ask(machine, "ioctl", 0, 0x5412, program=program) == EPERM
    assert ask(machine, "ioctl", 0, 0x5413, program=program) == ALLOWED


def test_an_old_landlock_gets_help_against_truncation(machine: str) -> None:
    program = strict(machine)
    assert ask(machine, "truncate", program=program) == EPERM
    assert ask(machine, "openat2", program=program) == ENOSYS
    assert ask(machine, "openat", 0, 0, O_TRUNC, program=program) == EPERM
    assert ask(machine, "openat", 0, 0, O_TRUNC | O_WRONLY, program=program) == ALLOWED
    new = seccomp.program(machine, (), tracing=False)
    assert ask(machine, "truncate", program=new) == ALLOWED
    assert ask(machine, "openat2", program=new) == ALLOWED


def test_the_older_open_call_is_covered_too() -> None:
    assert ask("x86_64", "open", 0, O_TRUNC, program=strict("x86_64")) == EPERM
    assert ask("x86_64", "open", 0, 0, program=strict("x86_64")) == ALLOWED
