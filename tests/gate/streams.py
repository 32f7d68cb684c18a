"""Captures filled by hand, as reading from a pipe fills them."""

from stringd.gate.capture import Capture


def fill(capture: Capture, data: bytes) -> None:
    while data:
        room = capture.room()
        count = min(len(room), len(data))
        room[:count] = data[:count]
        capture.took(count)
        data = data[count:]
