"""Real attempts to reach what runs outside: sockets, processes, and more rights."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from stringd.system.sandbox import Landlock, Level, Network
from tests.system.sandbox.cage import NOBODY, SECRET, Cage, snapshot

CONNECT = """
import socket, sys
family, kind, address = eval(sys.argv[1])
with socket.socket(family, kind) as each:
    each.settimeout(20)
    each.connect(address)
    each.send(b"x")
    print("CONNECTED")
"""
PAIR = """
import socket, sys
left, right = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
left.sendto(b"x", sys.argv[1])
print("CONNECTED")
"""
ATTACH = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
print("ATTACHED" if libc.ptrace(16, int(sys.argv[1]), None, None) == 0 else "refused")
"""
READ_MEMORY = """
import sys
with open(f"/proc/{sys.argv[1]}/maps") as maps:
    start = int(maps.readline().partition("-")[0], 16)
with open(f"/proc/{sys.argv[1]}/mem", "rb") as memory:
    memory.seek(start)
    memory.read(8)
print("READ")
"""


@contextmanager
def listening(family: int, kind: int, address: str | tuple[str, int]) -> Iterator[socket.socket]:
    with socket.socket(family, kind) as listener:
        listener.bind(address)
        if kind == socket.SOCK_STREAM:
            listener.listen()
        listener.setblocking(False)
        yield listener


@contextmanager
def listener_of(cage: Cage, name: str) -> Iterator[tuple[socket.socket, str]]:
    """A listener, and how the program above is told of it."""
    stream, datagram = socket.SOCK_STREAM, socket.SOCK_DGRAM
    path, abstract = str(cage.outside / "s"), f"\0{cage.base.name}"
    asked: dict[str, tuple[int, int, str | tuple[str, int]]] = {
        "tcp": (socket.AF_INET, stream, ("127.0.0.1", 0)),
        "tcp6": (socket.AF_INET6, stream, ("::1", 0)),
        "udp": (socket.AF_INET, datagram, ("127.0.0.1", 0)),
        "unix": (socket.AF_UNIX, stream, path),
        "unix datagram": (socket.AF_UNIX, datagram, path),
        "abstract": (socket.AF_UNIX, stream, abstract),
    }
    family, kind, address = asked[name]
    with listening(family, kind, address) as listener:
        if family == socket.AF_UNIX and address == path:
            Path(path).chmod(0o777)
        bound = listener.getsockname()
        told = bound if isinstance(bound, bytes | str) else tuple(bound[:2])
        yield listener, repr((int(family), int(kind), told))


def heard(listener: socket.socket) -> bool:
    try:
        if listener.type == socket.SOCK_STREAM:
            listener.accept()[0].close()
        else:
            listener.recv(1)
    except BlockingIOError:
        return False
    return True


def python(cage: Cage, program: str, *arguments: str) -> str:
    """A line of shell that runs a program kept in the workspace."""
    (cage.workspace / "program.py").write_text(program)
    quoted = " ".join("'" + each.replace("'", "'\\''") + "'" for each in arguments)
    return f'"$PY" -I program.py {quoted} 2>&1'


KINDS = ("tcp", "tcp6", "udp", "unix", "unix datagram", "abstract")


@pytest.mark.parametrize("name", KINDS)
def test_nothing_outside_hears_from_inside(caged: Cage, name: str) -> None:
    with listener_of(caged, name) as (listener, told):
        caged.run(python(caged, CONNECT, told))
        assert not heard(listener)
        # The same attempt without walls is heard.
        done = caged.run(python(caged, CONNECT, told), caged.spec(Level.OPEN))
        assert "CONNECTED" in done.output
        assert heard(listener)


def test_a_pair_of_sockets_cannot_be_pointed_at_one_outside(caged: Cage) -> None:
    with listener_of(caged, "unix datagram") as (listener, _):
        path = str(caged.outside / "s")
        caged.run(python(caged, PAIR, path))
        assert not heard(listener)
        assert "CONNECTED" in caged.run(python(caged, PAIR, path), caged.spec(Level.OPEN)).output


def test_a_socket_in_the_workspace_that_serves_from_outside_is_not_heard(caged: Cage) -> None:
    path = str(caged.workspace / "sub/s")
    with listening(socket.AF_UNIX, socket.SOCK_STREAM, path) as listener:
        Path(path).chmod(0o777)
        caged.run(python(caged, CONNECT, repr((1, 1, path))))
        assert not heard(listener)


def test_an_open_network_reaches_listeners_of_the_machine(caged: Cage) -> None:
    with listener_of(caged, "tcp") as (listener, told):
        done = caged.run(python(caged, CONNECT, told), caged.spec(network=Network.OPEN))
        assert "CONNECTED" in done.output
        assert heard(listener)


def test_an_open_network_does_not_reach_unix_sockets(caged: Cage) -> None:
    with listener_of(caged, "unix") as (listener, told):
        caged.run(python(caged, CONNECT, told), caged.spec(network=Network.OPEN))
        assert not heard(listener)


@contextmanager
def bystander(cage: Cage) -> Iterator["subprocess.Popen[bytes]"]:
    """A process of the same account, outside, with a secret in its environment."""
    environment = {**cage.environment, "KEPT": SECRET}
    process = subprocess.Popen(["sleep", "600"], env=environment, **cage.user)
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def test_processes_outside_keep_their_environment_and_memory(caged: Cage) -> None:
    with bystander(caged) as other:
        script = f"""
            cat /proc/{other.pid}/environ /proc/[0-9]*/environ | tr '\\0' '\\n'
            ls -l /proc/{other.pid}/fd /proc/{other.pid}/cwd
            {python(caged, READ_MEMORY, str(other.pid))}
        """
        done = caged.run(f"{script}; true")
        assert SECRET not in done.output
        assert "READ" not in done.output
        assert SECRET in caged.run(script, caged.spec(Level.OPEN)).output


def test_processes_outside_cannot_be_traced(caged: Cage) -> None:
    with bystander(caged) as other:
        done = caged.run(python(caged, ATTACH, str(other.pid)))
        assert "ATTACHED" not in done.output


def test_processes_outside_cannot_be_killed(caged: Cage) -> None:
    if isinstance(caged.walls, Landlock) and not caged.walls.keeps_signals_in:
        pytest.skip("this kernel's Landlock lets signals out; the manual says so")
    with bystander(caged) as other:
        assert caged.run(f"kill -9 {other.pid}").code != 0
        assert other.poll() is None
        assert caged.run(f"kill -9 {other.pid}", caged.spec(Level.OPEN)).code == 0


def test_the_walls_cannot_be_killed_from_inside(caged: Cage) -> None:
    if isinstance(caged.walls, Landlock) and not caged.walls.keeps_signals_in:
        pytest.skip("this kernel's Landlock lets signals out; the manual says so")
    assert caged.run("kill -9 $PPID 2>/dev/null; echo still here") == (0, "still here\n")


def test_no_program_gains_rights(caged: Cage) -> None:
    done = caged.run("grep -E '^(NoNewPrivs|CapEff|CapPrm|CapBnd):' /proc/self/status")
    rows = dict(line.split(":\t") for line in done.output.splitlines())
    assert rows["NoNewPrivs"] == "1"
    assert int(rows["CapEff"], 16) == int(rows["CapPrm"], 16) == 0


def test_a_setuid_program_stays_with_the_account(caged: Cage) -> None:
    if caged.kind.account != "nobody":
        pytest.skip("needs root to make the program and another account to run it")
    program = caged.outside / "who"
    shutil.copy("/usr/bin/id", program)
    os.chown(program, 0, 0)
    program.chmod(0o4755)
    assert caged.run('"$OUT/who" -u').output == f"{NOBODY}\n"
    assert caged.run('"$OUT/who" -u', caged.spec(Level.OPEN)).output == "0\n"


def test_what_the_environment_names_does_not_run_outside_the_walls(caged: Cage) -> None:
    before = snapshot(caged)
    (caged.workspace / "start").write_text('echo x > "$OUT/started"\n')
    named = {
        "BASH_ENV": str(caged.workspace / "start"),
        "ENV": str(caged.workspace / "start"),
        "BASH_FUNC_printf%%": '() { echo x > "$OUT/printed"; }',
        "BASH_FUNC_exec%%": '() { echo x > "$OUT/executed"; }',
        "SHELLOPTS": "xtrace",
        "PS4": '$(echo x > "$OUT/traced")',
        "PYTHONSTARTUP": str(caged.workspace / "start"),
        "PYTHONPATH": str(caged.workspace),
    }
    (caged.workspace / "ctypes.py").write_text("open('/proc/self/cwd/../../outside/y', 'w')")
    enclosed = caged.enclosed(["/bin/true"], None, **named)
    assert caged.start(enclosed).wait() == 0
    assert snapshot(caged) == before


def test_variables_of_the_loader_reach_only_the_command(caged: Cage) -> None:
    enclosed = caged.enclosed(["/usr/bin/env"], LD_LIBRARY_PATH="/nowhere", PLAIN="1")
    assert "LD_LIBRARY_PATH" not in enclosed.environment
    output = caged.start(enclosed, stdout=subprocess.PIPE).communicate()[0].decode()
    assert "LD_LIBRARY_PATH=/nowhere" in output.splitlines()
    assert "PLAIN=1" in output.splitlines()


def test_keys_of_the_session_cannot_be_reached(caged: Cage) -> None:
    program = "import ctypes; print(ctypes.CDLL(None).syscall(CALL, 0, -3, 0))"
    number = "250" if os.uname().machine == "x86_64" else "219"
    assert caged.run(python(caged, program.replace("CALL", number))).output == "-1\n"


OPEN_SETTINGS = """
import os
opened = []
for top in ("/proc", "/sys/kernel", "/sys/module", "/sys/power"):
    for folder, folders, files in os.walk(top):
        if folder == "/proc":
            processes = {"self", "thread-self"}
            folders[:] = [each for each in folders if not each.isdigit() and each not in processes]
        for name in files:
            try:
                # Opened, never written to.
                os.close(os.open(f"{folder}/{name}", os.O_WRONLY | os.O_NONBLOCK))
            except OSError:
                continue
            opened.append(f"{folder}/{name}")
print(opened)
"""


def test_no_setting_of_the_kernel_can_be_written_even_by_root(caged: Cage) -> None:
    assert caged.run(python(caged, OPEN_SETTINGS)).output == "[]\n"


def test_a_workspace_that_is_not_there_is_named(caged: Cage) -> None:
    gone = caged.workspace / "gone"
    with pytest.raises(Exception, match=r"gone is not a directory"):
        caged.enclosed(["true"], replace(caged.spec(), workspace=(gone,)))
