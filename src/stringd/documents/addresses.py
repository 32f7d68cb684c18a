"""Addresses of links, resolved against where they stand."""

from urllib.parse import urljoin


def joined(base: str, target: str) -> str:
    """A link's target as an address; what is none, such as `//[x`, stays as it is written."""
    try:
        return urljoin(base, target)
    except ValueError:
        return target
