"""Runs of Comma: their timelines are ours too, so that they can be shown and continued here."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from stringd.cli.backup.moved import PathMove, moved_timeline
from stringd.cli.comma.items import ImportItem, ImportPlan
from stringd.runs import FileRunStore
from stringd.system.files import make_private_directory, write_atomically
from stringd.system.safe_open import read_file

_MAX_TIMELINE: Final = 512 * 1024 * 1024
_MAX_CONFIG: Final = 1024 * 1024
_MOVED: Final = ("strategies", "packages")


def timelines_of(source: Path) -> Path:
    """Where Comma keeps its runs: beside the rest, unless its configuration says otherwise."""
    try:
        config = json.loads(read_file((source / "daemon.json").resolve(), _MAX_CONFIG).data)
        chosen = config.get("runsDir") if isinstance(config, dict) else None
    except (OSError, ValueError, RecursionError):
        chosen = None
    return Path(chosen) if isinstance(chosen, str) and chosen else source / "runs"


def import_runs(plan: ImportPlan) -> Iterator[ImportItem]:
    """Every run that began, oldest first. One that had not ended counts as interrupted here."""
    theirs, ours = timelines_of(plan.source), plan.data / "runs"
    if not theirs.is_dir():
        return
    from_store, to_store = FileRunStore(theirs), FileRunStore(ours)
    move = _move(plan)
    began = {each.run_id: each for each in reversed(from_store.overviews())}
    written = False
    for run_id, run in began.items():
        try:
            text = read_file((theirs / f"{run_id}.jsonl").resolve(), _MAX_TIMELINE).data
            item = _taken(plan, run_id, moved_timeline(text, move))
            if item.outcome == "imported" and not plan.dry:
                selected = from_store.selection(run_id)
                if selected is not None:
                    to_store.save_selection(run_id, selected)
                written = True
        except (OSError, ValueError, RecursionError) as error:
            item = ImportItem("runs", run_id, "refused", str(error))
        if run.damage and item.outcome == "imported":
            item = item._replace(note=f"damaged there already: {run.damage}")
        yield item
    if written:
        to_store.repair()
    from_store.close()
    to_store.close()


def _taken(plan: ImportPlan, run_id: str, text: bytes) -> ImportItem:
    target = plan.data / "runs" / f"{run_id}.jsonl"
    if target.exists():
        here = read_file(target.resolve(), _MAX_TIMELINE).data
        if here.startswith(text.rstrip(b"\n")):
            return ImportItem("runs", run_id, "present")
        note = f"another history is here; to take Comma's: stringd runs delete {run_id}"
        return ImportItem("runs", run_id, "kept", note)
    if not plan.dry:
        make_private_directory(target.parent)
        write_atomically(target, text, 0o600)
    return ImportItem("runs", run_id, "imported")


def _move(plan: ImportPlan) -> PathMove:
    """Where the strategies of runs are from now on; those that were not imported stay."""
    sources = {str(plan.source), os.path.realpath(plan.source)}
    return PathMove(
        tuple(
            (str(path), str(plan.data / path.relative_to(source)))
            for source in sorted(sources)
            for path in _imported(Path(source), plan.data)
        )
    )


def _imported(source: Path, data: Path) -> Iterator[Path]:
    for folder in _MOVED:
        for path in sorted((source / folder).rglob("*")):
            if path.is_file() and (data / path.relative_to(source)).is_file():
                yield path
