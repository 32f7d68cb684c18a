"""`stringd watch`: the feed in a terminal, a line an event."""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any, Final

from stringd.cli.runs.common import add_port, daemon_port, fail
from stringd.cli.streams import visible
from stringd.client.daemon import UsageError
from stringd.client.feed import follow
from stringd.client.http import StrangerError, TransportError

RETRY_SECONDS: Final = 1.0


def main(name: str, argv: Sequence[str]) -> int:
    """Print events until interrupted."""
    parser = argparse.ArgumentParser(
        prog=f"stringd {name}",
        description="Print what happens in the daemon as it happens: commands in topics, runs and "
        "what they wait for, questions at the gate. Ctrl-C ends it.",
    )
    parser.add_argument(
        "--types", default="", help="only these, for instance run.*,gate.asked (default: all)"
    )
    parser.add_argument(
        "--after", default="", metavar="ID", help="begin after the event of this id"
    )
    parser.add_argument("--json", action="store_true", help="print each event as a JSON object")
    add_port(parser)
    args = parser.parse_args(argv)
    try:
        port = daemon_port(args)
    except UsageError as error:
        return fail(error)
    try:
        for event in _events(port, args.types, args.after):
            print(json.dumps(event) if args.json else line(event), flush=True)
    except TransportError as error:
        return fail(error)
    return 0


def _events(port: int, types: str, after: str) -> Iterator[dict[str, Any]]:
    """The feed, across restarts of the daemon; the first connection has to succeed."""
    connected = False
    while True:
        try:
            for event in follow(port, types, after):
                if not connected:
                    connected = True
                after = event.get("id", "") or after
                yield event
        except StrangerError:
            raise
        except TransportError as error:
            if not connected and not after:
                raise
            print(visible(f"stringd: {error}; trying again"), file=sys.stderr)
            time.sleep(RETRY_SECONDS)


def line(event: dict[str, Any]) -> str:
    """An event for people: when, where, what."""
    at = str(event.get("ts", ""))[11:19]
    kind = str(event.get("kind", ""))
    return visible(f"{at}  {kind:<15}  {_about(kind, event)}")


def _about(kind: str, event: dict[str, Any]) -> str:
    match kind:
        case "topic.executing":
            return f"{event['topic']}  {event['command']}"
        case "topic.done":
            end = "ok" if event["ok"] else str(event["code"])
            return f"{event['topic']}  {event['command']}  {end}{_duration(event['ms'])}"
        case "topic.created" | "topic.closed":
            return str(event["topic"])
        case "run.state":
            more = event["error"] or event["result"]
            named = f"{event['runId']}  {event['strategy']}  {event['status']}"
            return f"{named}  {_first_line(more)}" if more else named
        case "run.step":
            return f"{event['runId']}  {event['step']} {event['state']}"
        case "run.waiting":
            asks = event["text"] or f"{event['tool']} {event['resource']}"
            return f"{event['runId']}  {event['agent']} asks: {_first_line(asks)}"
        case "run.resolved":
            answer = event["answer"] or "not answered"
            by = f" by {event['by']}" if event["by"] else ""
            return f"{event['runId']}  {event['prompt']}: {_first_line(answer)}{by}"
        case "gate.asked":
            command = " | ".join(" ".join(stage) for stage in event["stages"])
            return f"{'root' if event['privileged'] else 'user'}  {command}  {event['reason']}"
        case "gate.decided":
            return f"{event['requestId']}  {event['decision']}"
        case "gate.ended":
            codes = " ".join(map(str, event["exitCodes"]))
            return f"{event['requestId']}  {event['how']} {codes or event['message']}"
        case "daemon.health":
            return (
                f"{event['requestsPerSecond']}/s, {event['memoryBytes'] // 1_000_000} MB, "
                f"{event['topics']} topics, {event['shells']} shells, {event['runs']} runs, "
                f"{event['waiting']} waiting"
            )
        case "feed.missed":
            if event["why"] == "restarted":
                return "the daemon was started again"
            return f"{event['count']} events came too fast and are not shown"
        case _:
            return json.dumps(event)


def _duration(milliseconds: float) -> str:
    if milliseconds < 100:
        return ""
    seconds = milliseconds / 1000
    return f" in {seconds:.1f} s" if seconds < 60 else f" in {seconds / 60:.0f} min"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]
