"""Base64 for megabytes of output: OpenSSL's encoder is three times as fast as Python's own."""

import binascii
import ctypes
from collections.abc import Callable
from functools import cache
from typing import Final

from stringd.system.memory import large_room

# Below this the way to OpenSSL takes longer than the encoding.
_SMALL: Final = 4096
_LARGE: Final = 1_048_576

_Encoder = Callable[[memoryview], bytes | memoryview]


def encoded(data: memoryview) -> bytes | memoryview:
    """The base64 text of some bytes that can be written to."""
    if len(data) < _SMALL or len(data) % 3:
        return _plain(data)
    return _large()(data)


@cache
def _large() -> _Encoder:
    """The encoder of the OpenSSL that `hashlib` uses; Python's own where it cannot be reached."""
    try:
        import _hashlib

        block = ctypes.CDLL(_hashlib.__file__).EVP_EncodeBlock
    except (ImportError, AttributeError, OSError):
        return _plain
    block.restype = ctypes.c_int
    byte, address = ctypes.c_char, ctypes.byref

    def encode(data: memoryview) -> memoryview:
        size = len(data) // 3 * 4
        # The encoder ends its text with a zero byte.
        text = large_room(size + 1) if size > _LARGE else memoryview(bytearray(size + 1))
        written = block(address(byte.from_buffer(text)), address(byte.from_buffer(data)), len(data))
        if written != size:
            raise RuntimeError("base64 encoding went wrong")
        return text[:size]

    return encode


def _plain(data: memoryview) -> bytes:
    return binascii.b2a_base64(data, newline=False)
