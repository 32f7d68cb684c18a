"""The way out of a network of its own: a listener in it, handed to a proxy outside.

Imported by the launcher. In bubblewrap its text alone is the program between the walls and the
command, so it imports nothing of ours.
"""

import os
import sys

_SCM_RIGHTS = 1
_SIGPIPE, _SIGXFSZ = 13, 25
_LOOPBACK = "127.0.0.1"
_READY = b"y"
_CANNOT_RUN, _NOT_FOUND = 126, 127


def open_way_out(proxy: str, lives_with: int, direct: str) -> "dict[str, str]":
    """Hand a listener of this network to the proxy at a Unix socket; the variables that lead there.

    The proxy serves it while the process `lives_with` is there. `direct` are hosts that programs
    reach without it, separated by commas. Raises `OSError`.
    """
    # Not `socket`, which takes longer to load than all of this.
    import _socket

    listener = _socket.socket(_socket.AF_INET, _socket.SOCK_STREAM)
    listener.bind((_LOOPBACK, 0))
    listener.listen(128)
    life = os.pidfd_open(lives_with)
    connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    connection.connect(proxy)
    handed = b"".join(each.to_bytes(4, sys.byteorder) for each in (listener.fileno(), life))
    connection.sendmsg([b"\0"], [(_socket.SOL_SOCKET, _SCM_RIGHTS, handed)])
    if connection.recv(1) != _READY:
        raise OSError("the proxy did not take it")
    where = f"http://{_LOOPBACK}:{listener.getsockname()[1]}"
    for each in (listener, connection):
        each.close()
    os.close(life)
    names = ("http_proxy", "https_proxy", "all_proxy")
    found = {spelled: where for name in names for spelled in (name, name.upper())}
    return {**found, "no_proxy": direct, "NO_PROXY": direct, "NODE_USE_ENV_PROXY": "1"}


def _main(proxy: str, direct: str, *command: str) -> None:
    import _signal  # type: ignore[import-not-found]

    try:
        # The first process of a sandbox lives as long as anything does in it.
        os.environ.update(open_way_out(proxy, 1, direct))
    except OSError as error:
        _give_up(f"the network of named hosts cannot be made: {error}", _CANNOT_RUN)
    for number in (_SIGPIPE, _SIGXFSZ):
        _signal.signal(number, _signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606 - the command is the point
    except FileNotFoundError:
        _give_up(f"{command[0]}: command not found", _NOT_FOUND)
    except OSError as error:
        _give_up(f"{command[0]}: {error.strerror}", _CANNOT_RUN)


def _give_up(reason: str, code: int) -> None:
    sys.stderr.write(f"sandbox: {reason}\n")
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    _main(*sys.argv[1:])
