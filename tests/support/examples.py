"""How many examples a property is tried with."""

from hypothesis import settings

_FEWER = 3


def examples(many: int) -> settings:
    """`many` in `make soak`, which looks for new ones; fewer where they are the same every time."""
    exploring = settings.get_current_profile_name() == "explore"
    return settings(max_examples=many if exploring else many // _FEWER)
