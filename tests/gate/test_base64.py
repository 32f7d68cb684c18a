import base64
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.base64 import encoded


@given(st.integers(0, 20_000), st.randoms(use_true_random=False))
def test_every_size_is_encoded_as_the_standard_library_does(size: int, random: Random) -> None:
    data = random.randbytes(size)
    assert bytes(encoded(memoryview(bytearray(data)))) == base64.b64encode(data)
