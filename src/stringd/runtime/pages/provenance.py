"""Where a loaded document really came from.

Decided from the real path of its file, links followed, and from the digest of what was read, never
from what the text says about itself. What was decided when a page was loaded is asked again before
one of its actions runs: packages and the owner's trust may have changed since.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Final

from stringd.actions.provenance import (
    ForeignFile,
    HomeFile,
    InstalledApp,
    Provenance,
    TrustedFile,
    weakest,
)
from stringd.runtime.editing.paths import is_within
from stringd.runtime.packages import record
from stringd.runtime.packages.installed import installed
from stringd.runtime.packages.record import PackageStatus
from stringd.runtime.packages.saved import is_saved
from stringd.runtime.settings import APPS, WORK_DIRECTORY
from stringd.runtime.topics.location import OpenedFile, Page, path_of

if TYPE_CHECKING:
    from stringd.runtime.topics.call import Call

SHARED_TOOLS: Final = "~/.string/tools"
"""Tools for every user of the account; only its owner can put files there."""


def provenance_of(call: "Call", sources: tuple[OpenedFile, ...]) -> Provenance:
    """The provenance of a document that was read from these files."""
    return weakest(_of_file(call, source) for source in sources)


async def confirmed(call: "Call", page: Page) -> Provenance:
    """The provenance of a page by what its files, its package and the owner's trust are now."""
    if not page.sources:
        return page.provenance
    found = provenance_of(call, page.sources)
    if isinstance(found, InstalledApp):
        home = os.path.realpath(call.session.user.home)  # noqa: ASYNC240 - a few links at most
        standing = await asyncio.to_thread(record.whole, home, found.name)
        return _of_package(call, page.sources[0], standing)
    return found


def _of_file(call: "Call", source: OpenedFile) -> Provenance:
    user = call.session.user
    home = os.path.realpath(user.home)
    standing = record.standing(home, source.real, source.digest)
    if standing is not None:
        return _of_package(call, source, standing)
    data = (f"{home}/{APPS}", f"{home}/{WORK_DIRECTORY}")
    if is_within(source.real, home) and not any(is_within(source.real, each) for each in data):
        if not is_saved(home, source.real, source.digest):
            return HomeFile(_registered_app(call, source))
        return _trusted(call, source) or ForeignFile(source.real, saved=True)
    if is_within(source.real, os.path.realpath(os.path.expanduser(SHARED_TOOLS))):  # noqa: PTH111
        return HomeFile()
    return _trusted(call, source) or ForeignFile(source.real)


def _of_package(call: "Call", source: OpenedFile, standing: PackageStatus) -> Provenance:
    kept = standing.record
    if standing.state == "intact" and kept is not None:
        return InstalledApp(standing.name, kept.hosts, kept.adopted, kept.names, kept.since)
    return _trusted(call, source) or ForeignFile(source.real, record.why_not(standing))


def _trusted(call: "Call", source: OpenedFile) -> TrustedFile | None:
    state = call.services.trust.state(source.real, f"sha256:{source.digest}")
    return TrustedFile(source.real) if state == "trusted" else None


def _registered_app(call: "Call", source: OpenedFile) -> str | None:
    """The app of the topic, if this file was registered as it."""
    topic = call.session.topic
    if topic.type != "app":
        return None
    name = topic.name.partition(":")[0]
    path = path_of(installed(call.session.user.home, "app").get(name, ""))
    return name if path is not None and os.path.realpath(path) == source.real else None
