"""What walls are about to hide or to show may go away, or change, while they are being made."""

import subprocess
from collections.abc import Iterator
from dataclasses import replace

import pytest

from stringd.system.sandbox import Bubblewrap, SandboxSpec
from tests.support.daemon import WAIT_SECONDS
from tests.system.sandbox.cage import Cage, Kind, cage, listening


@pytest.fixture
def wrapped() -> Iterator[Cage]:
    with cage(Kind("bubblewrap", "self")) as found:
        if isinstance(found, str):
            pytest.skip(found)
        yield found


def _replace_bubblewrap(wrapped: Cage, script: str) -> None:
    """Start a script in place of bubblewrap, which counts its starts."""
    assert isinstance(wrapped.walls, Bubblewrap)
    program = wrapped.base / "bwrap"
    program.write_text(f"#!/bin/sh\necho start >>{wrapped.base}/starts\n{script}\n")
    program.chmod(0o755)
    wrapped.walls = wrapped.walls._replace(program=str(program))


def _with(wrapped: Cage, kind: str) -> SandboxSpec:
    place, spec = wrapped.outside / "place", wrapped.spec()
    match kind:
        case "hidden":
            return replace(spec, hidden=(*spec.hidden, str(place)))
        case "readable":
            hidden = (*spec.hidden, str(wrapped.outside))
            return replace(spec, hidden=hidden, readable=(*spec.readable, place))
        case "writable":
            return replace(spec, writable=(*spec.writable, place))
        case _:
            return replace(spec, named=(place,))


KINDS = ["hidden", "readable", "writable", "named"]
CHANGES = {
    "vanishes": "rm -rf {place}",
    "vanishes with all around it": "rm -rf {outside}",
    "becomes a file": "rm -rf {place}; : >{place}",
    "becomes a directory": "rm -rf {place}; mkdir {place}",
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("form", ["file", "directory"])
@pytest.mark.parametrize("kind", KINDS)
def test_the_command_runs_although_a_place_changes_meanwhile(
    wrapped: Cage, kind: str, form: str, change: str
) -> None:
    place = wrapped.outside / "place"
    place.mkdir() if form == "directory" else place.touch()
    assert isinstance(wrapped.walls, Bubblewrap)
    script = CHANGES[change].format(place=place, outside=wrapped.outside)
    once = f"[ -e {wrapped.base}/changed ] || {{ {script}; : >{wrapped.base}/changed; }}"
    _replace_bubblewrap(wrapped, f'{once}\nexec {wrapped.walls.program} "$@"')
    done = wrapped.run("echo out; echo err >&2; exit 3", _with(wrapped, kind))
    assert done == (3, "out\nerr\n")


def test_a_socket_may_vanish_with_its_server(wrapped: Cage) -> None:
    assert isinstance(wrapped.walls, Bubblewrap)
    path = wrapped.outside / "vanishing.sock"
    _replace_bubblewrap(wrapped, f'rm -rf {wrapped.outside}\nexec {wrapped.walls.program} "$@"')
    with listening(path):
        assert wrapped.run("exit 3") == (3, "")
    assert (wrapped.base / "starts").read_text() == "start\nstart\n"


def test_what_is_back_again_is_hidden_again(wrapped: Cage) -> None:
    """Some programs remove their file before they write it again."""
    secret = wrapped.home / ".netrc"
    assert isinstance(wrapped.walls, Bubblewrap)
    again = f"[ -e {wrapped.base}/changed ] || {{ rm {secret}; : >{wrapped.base}/changed; }}"
    back = f"[ $status = 0 ] || echo secret >{secret}"
    _replace_bubblewrap(
        wrapped, f'{again}\n{wrapped.walls.program} "$@"; status=$?; {back}\nexit $status'
    )
    assert wrapped.run("cat ~/.netrc").output == ""
    assert secret.read_text() == "secret\n"


def test_without_a_keeper_what_has_vanished_before_is_left_out(wrapped: Cage) -> None:
    assert isinstance(wrapped.walls, Bubblewrap)
    wrapped.walls = wrapped.walls._replace(keeper="")
    place = wrapped.outside / "place"
    place.mkdir()
    enclosed = wrapped.enclosed(["/bin/echo", "ran"], _with(wrapped, "hidden"))
    place.rmdir()
    process = wrapped.start(enclosed, stdout=subprocess.PIPE)
    assert process.communicate(timeout=WAIT_SECONDS)[0] == b"ran\n"


def test_another_failure_is_said_once(wrapped: Cage) -> None:
    _replace_bubblewrap(wrapped, "echo bwrap: no luck >&2\nexit 1")
    process = wrapped.start(wrapped.enclosed(["/bin/true"]), stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=WAIT_SECONDS)
    assert (process.returncode, said) == (1, b"bwrap: no luck\n")
    assert (wrapped.base / "starts").read_text() == "start\n"


def test_a_place_that_stays_in_the_way_does_not_keep_it_trying(wrapped: Cage) -> None:
    place = wrapped.outside / "place"
    place.mkdir()
    _replace_bubblewrap(wrapped, f"echo bwrap: cannot mount {place} >&2\nexit 1")
    enclosed = wrapped.enclosed(["/bin/true"], _with(wrapped, "hidden"))
    process = wrapped.start(enclosed, stderr=subprocess.PIPE)
    _, said = process.communicate(timeout=WAIT_SECONDS)
    assert said == f"bwrap: cannot mount {place}\n".encode()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("form", ["file", "directory"])
def test_every_kind_of_walls_is_made_without_what_has_vanished(
    caged: Cage, kind: str, form: str
) -> None:
    place = caged.outside / "place"
    place.mkdir() if form == "directory" else place.touch()
    enclosed = caged.enclosed(["/bin/sh", "-c", "echo ran"], _with(caged, kind))
    place.rmdir() if form == "directory" else place.unlink()
    process = caged.start(enclosed, stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    assert process.communicate(timeout=WAIT_SECONDS)[0] == b"ran\n"
