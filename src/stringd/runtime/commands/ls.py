"""`/ls`: what is in a directory."""

import unicodedata
from pathlib import Path

from stringd.runtime.editing.paths import (
    FilePath,
    is_directory,
    is_there,
    locate,
    locate_named,
    standing_directory,
)
from stringd.runtime.errors import CommandError
from stringd.runtime.topics.call import Call
from stringd.runtime.topics.location import display
from stringd.wire.result import Result


def ls(call: Call) -> Result:
    """List a directory, by default where the topic is."""
    session = call.session
    if session.topic.type != "file":
        raise CommandError(
            "INVALID_TARGET",
            f"/ls is not available for {session.topic.type} topics — "
            "there is no filesystem to list.\n"
            "Use /open to go somewhere, or /nav to see where this document leads.",
        )
    typed = call.argument.strip()
    target = locate_named(call, typed) if typed else locate(call, str(standing_directory(call)))
    return list_directory(call, target, typed or ".")


def list_directory(call: Call, target: FilePath, typed: str) -> Result:
    """The listing of a directory that passed the path door."""
    if not is_there(target.real):
        hint = f"\n{target.hint}" if target.hint else ""
        raise CommandError("NOT_FOUND", f"Not found: {typed}{hint}")
    if not is_directory(target.real):
        raise CommandError("INVALID_TARGET", f"Not a directory: {typed}")
    try:
        entries = [entry for entry in target.real.iterdir() if not entry.name.startswith(".")]
    except OSError as error:
        raise CommandError("LOAD_ERROR", f"Failed to list {typed}: {error.strerror}") from error
    shown = display(call.session.user.home, target.path)
    return Result.page(f"Listing {shown}/", _rows(entries))


def _rows(entries: list[Path]) -> str:
    ranked = sorted((not is_directory(e), _collation(e.name), e.name) for e in entries)
    rows = [f"  {name}" if is_file else f"  {name}/" for is_file, _, name in ranked]
    return "\n".join(rows) or "  (empty)"


def _collation(name: str) -> tuple[str, str]:
    """Alphabetical as people sort: case and accents decide only between equals."""
    plain = "".join(c for c in unicodedata.normalize("NFKD", name) if not unicodedata.combining(c))
    return plain.casefold(), name.swapcase()
