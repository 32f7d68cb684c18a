"""What each account and everybody may have at once: nothing is lost, nothing is exceeded."""

from hypothesis import given
from hypothesis import strategies as st

from stringd.server.http.budget import PeerBudget, PeerLimits, Place, limits_for

SMALL = PeerLimits(connections=16, websockets=8, requests=8, body_bytes=800, strangers=3)


def test_one_account_leaves_room_for_another() -> None:
    budget = PeerBudget(SMALL)
    mine = [budget.enter(1000) for _ in range(20)]
    assert sum(place is not None for place in mine) == 14
    others = [budget.enter(0) for _ in range(20)]
    assert sum(place is not None for place in others) == 2
    assert budget.largest() == 1000


def test_a_place_that_was_left_is_free_once() -> None:
    budget = PeerBudget(PeerLimits(connections=1))
    place = budget.enter(1000)
    assert place is not None
    assert budget.enter(1000) is None
    place.leave()
    place.leave()
    assert budget.enter(1000) is not None
    assert budget.enter(1000) is None


def test_strangers_have_few_places_and_take_none_of_the_others() -> None:
    budget = PeerBudget(SMALL)
    strangers = [budget.enter(7, stranger=True) for _ in range(9)]
    assert sum(place is not None for place in strangers) == 3
    assert budget.all.connections == 0
    assert budget.enter(1000) is not None


def test_websockets_and_requests_have_limits_of_their_own() -> None:
    budget = PeerBudget(SMALL)
    places = [place for _ in range(14) if (place := budget.enter(1000)) is not None]
    assert sum(place.become_websocket() for place in places) == 7
    for place in places[:7]:
        assert not place.busy
        place.begin_request()
    assert places[0].busy
    root = budget.enter(0)
    assert root is not None
    assert not root.busy
    places[0].end_request()
    assert not places[0].busy


@given(st.lists(st.tuples(st.integers(0, 2), st.integers(1, 400)), max_size=40))
def test_bytes_held_are_counted_exactly(steps: list[tuple[int, int]]) -> None:
    budget = PeerBudget(SMALL)
    places: list[Place] = [place for uid in range(3) if (place := budget.enter(uid)) is not None]
    held: list[tuple[Place, int]] = []
    for uid, size in steps:
        if places[uid].hold(size):
            held.append((places[uid], size))
        assert budget.all.body_bytes == sum(size for _, size in held) <= SMALL.body_bytes
    for place, size in held:
        place.release(size)
    for place in places:
        place.leave()
    assert (budget.all.body_bytes, budget.all.connections) == (0, 0)


@given(st.integers(16, 2_000_000))
def test_limits_leave_descriptors_for_shells(descriptors: int) -> None:
    limits = limits_for(descriptors)
    assert 16 <= limits.connections <= 8192
    assert limits.connections <= max(16, descriptors * 3 // 4)
    assert 0 < limits.websockets < limits.connections
