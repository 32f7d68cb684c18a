"""The audit log for people: one line a request. Pure."""

from collections.abc import Iterable, Mapping
from typing import Final

from stringd.gate.display import clipped, pipeline_text, render

MAX_COMMAND: Final = 200
_Record = Mapping[str, object]


def history(records: Iterable[_Record | None]) -> list[str]:
    """A line for every request and for everything else that happened, in order of arrival."""
    requests: dict[str, dict[str, object]] = {}
    rows: list[dict[str, object] | str] = []
    for record in records:
        if record is None:
            rows.append("(not a record)")
            continue
        event, request_id = str(record.get("event", "")), str(record.get("id", ""))
        if event == "received":
            requests[request_id] = dict(record)
            rows.append(requests[request_id])
        elif event in _LATER and request_id in requests:
            # What a later record says counts; when it arrived and what it was stay.
            known = requests[request_id]
            known |= {name: value for name, value in record.items() if name not in ("time", "seq")}
        else:
            rows.append(_other(record))
    return [row if isinstance(row, str) else _request(row) for row in rows]


_LATER: Final = ("decided", "finished", "failed", "abandoned", "stopped")


def _request(record: _Record) -> str:
    parts = [
        _time(record),
        f"{_outcome(record):<10}",
        _rank(record),
    ]
    if record.get("action") == "remote":
        parts.append(f"on {clipped(str(record.get('host', '')), MAX_COMMAND)}")
    parts.append(_command(record))
    parts += _named(record, "note", "message", "session")
    return render("  ".join(parts))


def _outcome(record: _Record) -> str:
    match record.get("event"):
        case "received":
            return "open"
        case "decided":
            return str(record.get("decision", ""))
        case "finished":
            codes = record.get("exit_codes")
            shown = codes if isinstance(codes, list) else []
            return f"exit {' '.join(map(str, shown))}"
        case "abandoned":
            return "withdrawn"
        case event:
            return str(event)


def _rank(record: _Record) -> str:
    if record.get("action") == "decide":
        return "asks"
    return "root" if record.get("privileged") else "user"


def _command(record: _Record) -> str:
    if "tool" in record:
        text = str(record.get("text", record.get("text_start", "")))
        return clipped(f"{record['tool']}: {text.partition(chr(10))[0]}", MAX_COMMAND)
    pipeline = record.get("pipeline")
    if not isinstance(pipeline, list):
        return clipped(str(record.get("pipeline_start", "")), MAX_COMMAND)
    return clipped(
        pipeline_text([[str(word) for word in stage] for stage in pipeline]), MAX_COMMAND
    )


def _other(record: _Record) -> str:
    parts = [_time(record), f"{record.get('event', '')!s:<10}"]
    parts += _named(record, "version", "how", "message", "id")
    return render("  ".join(parts))


def _named(record: _Record, *names: str) -> list[str]:
    return [
        f"{name}: {clipped(str(record[name]), MAX_COMMAND)}"
        for name in names
        if record.get(name) not in (None, "")
    ]


def _time(record: _Record) -> str:
    return str(record.get("time", ""))[:19].replace("T", " ")
