from hypothesis import given
from hypothesis import strategies as st

from stringd.wire.memory import find, large_room


@given(st.integers(0, 200_000), st.integers(0, 200_000), st.integers(0, 1000))
def test_a_byte_is_found_unless_the_unwanted_one_comes_first(
    wanted: int, unwanted: int, start: int
) -> None:
    room = large_room(200_001)
    room[wanted], room[unwanted] = ord('"'), ord("\\")
    expected = wanted if wanted >= start and not start <= unwanted < wanted else -1
    assert find(room, b'"', start, unless=b"\\") == (-1 if wanted == unwanted else expected)
