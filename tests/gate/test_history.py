from stringd.gate.history import history

RECEIVED: dict[str, object] = {
    "time": "2026-02-13T14:30:00.123Z",
    "event": "received",
    "id": "a",
    "pipeline": [["apt", "install", "a b"]],
    "privileged": True,
    "session": "alpha",
}
OPENING = "2026-02-13 14:30:00  "


def after(*records: dict[str, object]) -> list[str]:
    return history([RECEIVED, *({"id": "a", "time": "later", **record} for record in records)])


def test_a_request_is_one_line_that_says_how_it_ended() -> None:
    command = "root  apt install 'a b'  session: alpha"
    assert after() == [f"{OPENING}open        {command}"]
    denied = after({"event": "decided", "decision": "denied"})
    assert denied == [f"{OPENING}denied      {command}"]
    done = after(
        {"event": "decided", "decision": "approved"}, {"event": "finished", "exit_codes": [0, 1]}
    )
    assert done == [f"{OPENING}exit 0 1    {command}"]
    (withdrawn,) = after({"event": "abandoned", "message": "caller gone"})
    assert withdrawn.startswith(f"{OPENING}withdrawn   root")


def test_what_is_not_a_request_has_its_own_line() -> None:
    rows = history([None, {"time": "2026-02-13T14:30:00Z", "event": "started", "version": "1"}])
    assert rows == ["(not a record)", f"{OPENING}started     version: 1"]


def test_nothing_in_a_record_reaches_the_terminal_as_an_escape() -> None:
    (row,) = history([{**RECEIVED, "session": "\x1b[2J", "pipeline": [["\x9b"]]}])
    assert all(character.isprintable() for character in row)
