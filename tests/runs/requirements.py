"""What the runs protocol promises."""

from tests.requirements import Requirement

_SEED = "runs protocol page"
_SPEC = "strategy runs"

ALL = [
    Requirement("RUN-01", "A ping is answered by a pong that echoes its requestId.", _SEED),
    Requirement("RUN-02", "A frame that is no JSON is answered PARSE_ERROR, Invalid JSON.", _SEED),
    Requirement("RUN-03", "JSON that fits no message is answered VALIDATION_ERROR.", _SEED),
    Requirement("RUN-04", "Every daemon message carries a UTC timestamp with a Z.", _SEED),
    Requirement("RUN-05", "prepare_run answers run_prepared or PREPARE_FAILED.", _SEED),
    Requirement("RUN-06", "start_run on an unknown or started run is START_FAILED.", _SEED),
    Requirement("RUN-07", "continue_run on a wrong run is CONTINUE_FAILED.", f"{_SPEC} D2"),
    Requirement("RUN-08", "stop_run broadcasts strategy_error CANCELLED at once.", _SEED),
    Requirement("RUN-09", "user_input without a waiting agent is NO_PENDING_INPUT.", _SEED),
    Requirement("RUN-10", "subscribe to an unknown run is SUBSCRIBE_ERROR.", _SEED),
    Requirement("RUN-11", "steer_run on a run that is over is RUN_NOT_STEERABLE.", _SEED),
    Requirement("RUN-12", "A failure while running is strategy_error EXECUTION_ERROR.", _SEED),
    Requirement("RUN-13", "Events of a segment come in one fixed order.", f"{_SPEC} 8.5"),
    Requirement("RUN-14", "The segment's requestId is on all its events.", f"{_SPEC} D3"),
    Requirement("RUN-15", "A disconnect stops no run and ends all subscriptions.", _SEED),
    Requirement(
        "RUN-16", "Right after strategy_completed the run can be prepared.", f"{_SPEC} 8.3"
    ),
    Requirement(
        "RUN-17", "A continuation re-runs the flow with each agent's memory.", f"{_SPEC} 8.3"
    ),
    Requirement("RUN-18", "Any number of subscribers see the same order.", f"{_SPEC} 2.4"),
    Requirement(
        "RUN-19", "seq counts a run's broadcasts without gap; fromSeq replays.", f"{_SPEC} 21.2"
    ),
    Requirement("RUN-20", "Steering reaches the next agent call, in blocks.", f"{_SPEC} 8.10"),
    Requirement("RUN-21", "Run ids that are no plain file names are refused.", f"{_SPEC} D20"),
    Requirement(
        "RUN-22", "Interrupted runs are repaired at start and can be resumed.", f"{_SPEC} 21.3"
    ),
    Requirement(
        "RUN-23", "Strategy files are strict and errors name line and column.", f"{_SPEC} 9.8"
    ),
    Requirement("RUN-24", "Cycle observers break by four match modes.", f"{_SPEC} 10.6"),
    Requirement("RUN-25", "Usage totals include observers and add up.", f"{_SPEC} D15"),
    Requirement("RUN-26", "Shutdown cancels runs, then closes with 1001.", f"{_SPEC} 1.3"),
    Requirement(
        "RUN-27", "Web origins other than loopback are refused the upgrade.", f"{_SPEC} 21.1"
    ),
    Requirement(
        "RUN-28", "A slow client is told and can resume; it holds up nobody.", f"{_SPEC} 21.2"
    ),
    Requirement("RUN-29", "A user agent asks exactly when its message is empty.", f"{_SPEC} D6"),
    Requirement("RUN-30", "Compaction supersedes old records behind one summary.", f"{_SPEC} 11"),
    Requirement(
        "RUN-31", "A step never completed twice, whenever the daemon is killed.", f"{_SPEC} 21.3"
    ),
    Requirement("RUN-33", "Outside the cwd nothing is done without a yes.", f"{_SPEC} 13.3"),
    Requirement("RUN-34", "A finished tool call is never repeated on resume.", f"{_SPEC} 21.6"),
    Requirement("RUN-35", "A prompt open at a crash keeps its id and answers.", f"{_SPEC} 21.5"),
    Requirement("RUN-36", "On request a call under way can be steered.", f"{_SPEC} 21.4"),
    Requirement("RUN-37", "Old events are forgotten; numbers and history stay.", f"{_SPEC} 21.2"),
    Requirement("RUN-38", "Strategies are found, runs deleted over the wire.", f"{_SPEC} 21.8"),
    Requirement("RUN-39", "A run is live in one daemon at a time.", f"{_SPEC} 21.3"),
    Requirement("RUN-41", "The listed dangerous commands are never run.", f"{_SPEC} 13.3"),
    Requirement("RUN-42", "Ordinary commands run unasked.", f"{_SPEC} 13.3"),
    Requirement("RUN-43", "Credentials are kept private and never shown.", f"{_SPEC} 12.2, 5.19"),
    Requirement("RUN-44", "The catalog is renewed silently, at most daily.", f"{_SPEC} 12.3"),
    Requirement("RUN-45", "Live lists replace or stand beside the catalog.", f"{_SPEC} 12.4"),
    Requirement("RUN-46", "A failed provider is asked again, twice unless told.", f"{_SPEC} 10.9"),
    Requirement("RUN-47", "What a provider says in its stream is in the error.", f"{_SPEC} 10.9"),
    Requirement("RUN-48", "MCP servers of all three kinds serve agents' tools.", f"{_SPEC} 14"),
    Requirement("RUN-49", "Whatever a run spends counts into its budget.", f"{_SPEC} 21.7"),
    Requirement("RUN-50", "Tool calls of one answer run together, in order told.", "ruling 23"),
    Requirement("RUN-32", "Timelines of the reference can be listed and continued.", f"{_SPEC} 22"),
]
