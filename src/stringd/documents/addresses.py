"""Addresses of links, resolved against where they stand."""

from typing import Final
from urllib.parse import urljoin

LONGEST_FOREIGN: Final = 2048
"""Characters of an address beyond ASCII. They are composed when it is taken apart, which takes
time that grows with the square of a row of accents."""


def is_endless(address: str) -> bool:
    """Whether an address is too long to be taken apart."""
    return len(address) > LONGEST_FOREIGN and not address.isascii()


def joined(base: str, target: str) -> str:
    """A link's target as an address; what is none, such as `//[x`, stays as it is written."""
    if is_endless(target):
        return target
    try:
        return urljoin(base, target)
    except ValueError:
        return target
