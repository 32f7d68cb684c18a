"""The approval machine, explored: every state with every event, and every walk to its end."""

from collections.abc import Iterator

import pytest

from stringd.gate.decide import (
    ENDINGS,
    TRANSITIONS,
    Approval,
    Event,
    IllegalStepError,
    State,
    Table,
    step,
)
from tests.gate.test_validate import valid, validated
from tests.requirements import proves

Walk = tuple[tuple[State, Event], ...]
LONGEST = 7


def walks(
    table: Table, state: State = State.WAITING, past: Walk = ()
) -> Iterator[tuple[Walk, State]]:
    """Every walk of at most `LONGEST` steps, with the state it ends in."""
    yield past, state
    if len(past) == LONGEST:
        return
    for event in Event:
        if (state, event) in table:
            yield from walks(table, table[state, event], (*past, (state, event)))


def violations(table: Table) -> set[str]:
    """What a table allows that no table may."""
    found = set()
    for past, end in walks(table):
        events = [event for _, event in past]
        states = [state for state, _ in past] + [end]
        starts = [
            index
            for index, event in enumerate(events)
            if states[index + 1] is State.RUNNING and states[index] is not State.RUNNING
        ]
        if len(starts) > 1:
            found.add("ran twice")
        for start in starts:
            found |= _broken_promises(events[:start], events[start])
    return found


def _broken_promises(before: list[Event], entering: Event) -> set[str]:
    found = set()
    if entering is not Event.START:
        found.add("ran without being started")
    deciding = (Event.TURN, Event.YES, Event.PERMITTED)
    if [event for event in before if event in deciding] not in (
        [Event.TURN, Event.YES],
        [Event.PERMITTED],
    ):
        found.add("ran without a question and one yes, and without a rule or a grant")
    if {Event.NO, Event.FORBIDDEN, Event.SILENCE, Event.TROUBLE, Event.SHUTDOWN} & set(before):
        found.add("ran after it was refused")
    if Event.HANGUP in before:
        found.add("ran after the caller had gone")
    return found


@proves("GATE-ASK-01")
def test_no_walk_runs_without_approval_or_twice_or_after_the_caller_has_gone() -> None:
    assert violations(TRANSITIONS) == set()


def test_every_state_is_reached_and_every_walk_can_end() -> None:
    reached = {state for _, state in walks(TRANSITIONS)}
    assert reached == set(State)
    assert {State.FINISHED, State.DENIED, State.TIMED_OUT, State.CALLER_GONE} < ENDINGS


DANGEROUS = [
    (state, event)
    for state in State
    for event in Event
    if state is not State.RUNNING and (state, event) != (State.APPROVED, Event.START)
]


@pytest.mark.parametrize(("state", "event"), DANGEROUS)
def test_mutation_any_new_step_into_running_is_noticed(state: State, event: Event) -> None:
    assert violations({**TRANSITIONS, (state, event): State.RUNNING})


@pytest.mark.parametrize(
    ("state", "event"),
    [
        (s, e)
        for s, e in DANGEROUS
        if (s, e) not in ((State.ASKED, Event.YES), (State.WAITING, Event.PERMITTED))
        and s is not State.APPROVED
    ],
)
def test_mutation_any_new_step_into_approved_is_noticed(state: State, event: Event) -> None:
    assert violations({**TRANSITIONS, (state, event): State.APPROVED})


@pytest.mark.parametrize("state", State)
@pytest.mark.parametrize("event", Event)
def test_a_step_outside_the_table_raises(state: State, event: Event) -> None:
    if (state, event) in TRANSITIONS:
        assert step(state, event) is TRANSITIONS[state, event]
    else:
        with pytest.raises(IllegalStepError, match=f"{event.name} is not possible in {state.name}"):
            step(state, event)


@proves("GATE-ASK-01")
def test_an_approval_gives_one_permit_and_only_after_a_yes() -> None:
    approval = Approval(validated(valid()), ())
    for event in (Event.TURN, Event.YES):
        with pytest.raises(IllegalStepError):
            approval.spend()
        approval.advance(event)
    assert approval.spend().request is approval.request
    with pytest.raises(IllegalStepError):
        approval.spend()


@pytest.mark.parametrize("event", [Event.NO, Event.SILENCE, Event.HANGUP, Event.SHUTDOWN])
def test_a_refused_approval_gives_no_permit(event: Event) -> None:
    approval = Approval(validated(valid()), ())
    approval.advance(Event.TURN)
    approval.advance(event)
    with pytest.raises(IllegalStepError):
        approval.spend()
