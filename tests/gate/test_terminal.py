"""The terminal as a device; what it shows is proved in `test_app.py`."""

import os
import pty
import termios
import threading
from collections.abc import Iterator

import pytest

from stringd.gate import terminal
from stringd.gate.display import line
from stringd.gate.errors import TroubleError
from stringd.gate.terminal import Terminal
from tests.gate.support import PATIENCE


@pytest.fixture
def ends() -> Iterator[tuple[int, int]]:
    master, slave = pty.openpty()
    yield master, slave
    os.close(slave)
    os.close(master)


def test_a_screen_that_takes_no_more_is_trouble_and_its_settings_can_be_put_back(
    ends: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, slave = ends
    monkeypatch.setattr(terminal, "SCREEN_SECONDS", 0.01)
    before = termios.tcgetattr(slave)
    device = Terminal(slave, slave, {})
    with device.raw():
        termios.tcflow(slave, termios.TCOOFF)
        with pytest.raises(TroubleError, match="prompt error: Resource temporarily unavailable"):
            device.show(line("a question"))
    assert termios.tcgetattr(slave) == before


def test_a_screen_that_goes_on_gets_all_of_it(ends: tuple[int, int]) -> None:
    master, slave = ends
    device = Terminal(slave, slave, {})
    termios.tcflow(slave, termios.TCOOFF)
    writer = threading.Thread(target=device.show, args=(line("a question"),))
    writer.start()
    termios.tcflow(slave, termios.TCOON)
    writer.join(PATIENCE)
    assert os.read(master, 99) == b"a question\r\n"


def test_others_still_wait_for_the_screen_they_share_with_us(ends: tuple[int, int]) -> None:
    _, slave = ends
    Terminal(slave, slave, {})
    assert os.get_blocking(slave)
