"""Names in the order in which a person may have meant them."""

from collections.abc import Iterable
from difflib import SequenceMatcher


def closest_first(meant: str, names: Iterable[str]) -> list[str]:
    """Every name, those most like the one that was meant first, others as they come."""
    wanted = meant.casefold()

    def distance(name: str) -> float:
        found = name.casefold()
        likeness = SequenceMatcher(None, wanted, found).ratio()
        return -likeness if likeness >= 0.5 or wanted in found else 0.0

    return sorted(names, key=distance)
