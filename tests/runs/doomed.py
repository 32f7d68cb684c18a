"""`stringd serve` that is killed at one event of a timeline: DOOM=<type>:<how many>:<moment>.

The moment is `before` or `after` the event is written, or `torn`, with half of it written.
"""

import os
import signal
import sys
from typing import NoReturn

from stringd.cli.main import main
from stringd.runs.record.events import TimelineEvent, encode_event
from stringd.runs.record.file_store import FileRunStore


def die() -> NoReturn:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError("nobody survives this")


def doom(kind: str, number: int, moment: str) -> None:
    for name in ("append", "end"):
        doom_method(name, kind, number, moment)


def doom_method(name: str, kind: str, number: int, moment: str) -> None:
    written, left = getattr(FileRunStore, name), number

    def append(store: FileRunStore, run_id: str, event: TimelineEvent) -> None:
        nonlocal left
        left -= event.__struct_config__.tag == kind
        if left or event.__struct_config__.tag != kind:
            written(store, run_id, event)
            return
        if moment == "torn":
            line = encode_event(event)
            store._files.write(store._timeline(run_id), line[: len(line) // 2])
        if moment == "after":
            written(store, run_id, event)
        die()

    setattr(FileRunStore, name, append)


if __name__ == "__main__":
    kind, number, moment = os.environ["DOOM"].split(":")
    doom(kind, int(number), moment)
    sys.exit(main())
