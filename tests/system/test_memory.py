from hypothesis import given
from hypothesis import strategies as st

from stringd.system.memory import large_room
from stringd.wire.search import find


@given(st.integers(0, 200_000), st.integers(0, 200_000), st.integers(0, 200_000))
def test_the_first_of_some_bytes_is_found(one: int, other: int, start: int) -> None:
    room = large_room(200_001)
    room[one], room[other] = ord('"'), ord("\\")
    after = [at for at in (one, other) if at >= start]
    assert find(room, (b'"', b"\\"), start) == min(after, default=-1)
