"""A newer catalog from the network, at most once a day. Nothing waits for it, nothing needs it."""

import threading
import time
from collections.abc import Callable, Collection
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import msgspec

from stringd.net.fetch import FetchError, FetchRequest, fetch_in_this_thread
from stringd.runs.models.providers import listed_provider
from stringd.system.files import make_private_directory, write_atomically

LIFETIME_SECONDS: Final = 24 * 3600
_FETCH_SECONDS: Final = 5.0


def refresh(
    cache: Path, url: str, providers: Collection[str], renewed: Callable[[], None]
) -> threading.Thread | None:
    """Fetch the catalog into `cache` unless it is fresh, then call `renewed`.

    Kept are these providers, and others that can be used: nobody needs the rest.
    The thread is nobody's to wait for: a daemon that ends does not wait for a name server.
    """
    if _is_fresh(cache):
        return None
    thread = threading.Thread(
        target=_renew, args=(cache, url, providers, renewed), name="model catalog", daemon=True
    )
    thread.start()
    return thread


def _is_fresh(cache: Path) -> bool:
    try:
        fetched = float(msgspec.json.decode(cache.read_bytes())["fetchedAt"]) / 1000
    except (OSError, ValueError, KeyError, TypeError):
        return False
    return 0 <= time.time() - fetched < LIFETIME_SECONDS


def _renew(cache: Path, url: str, providers: Collection[str], renewed: Callable[[], None]) -> None:
    # Whatever fails here (network, disk, their form), the catalog at hand is good enough.
    with suppress(OSError, ValueError, FetchError):
        data = {
            name: entry
            for name, entry in _fetched(url).items()
            if name in providers or (isinstance(entry, dict) and listed_provider(entry))
        }
        _write(cache, {"fetchedAt": round(time.time() * 1000), "data": data})
        renewed()


def _fetched(url: str) -> dict[str, Any]:
    answer = fetch_in_this_thread(FetchRequest("GET", url, {}, timeout=_FETCH_SECONDS))
    if answer.status >= 300 or answer.truncated:
        raise ValueError(f"HTTP {answer.status} from {answer.url} is not a catalog")
    return msgspec.json.decode(answer.body, type=dict[str, Any])


def _write(cache: Path, content: dict[str, Any]) -> None:
    make_private_directory(cache.parent)
    write_atomically(cache, msgspec.json.encode(content), 0o600)
