"""The decision without a key, enumerated, and the same whoever asks for it."""

from dataclasses import replace
from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stringd.gate.callers import CallerId
from stringd.gate.grants import FileIdentity, GrantedCaller
from stringd.gate.judge import Attempt, judge
from stringd.gate.policy import StandingPolicy
from stringd.gate.rules import Effect, ExactWord, Rule
from tests.gate.rulebook import CALLER, IDENTITY, attempt
from tests.requirements import proves

SAID = [(), ("allow",), ("ask",), ("deny",), ("allow", "ask"), ("allow", "deny"), ("ask", "deny")]


def rule(effect: str, program: str, *, root: bool = False) -> Rule:
    return Rule(
        Effect(effect),
        f"/usr/bin/{program}",
        (ExactWord("x"),),
        root=root,
        file="/r",
        line=1,
        identity=IDENTITY,
    )


def expected(
    first: tuple[str, ...],
    second: tuple[str, ...],
    granted: bool,
    as_root: bool,
    agent: bool,
) -> Effect:
    """The table in words: deny, ask, the agent, a grant, all allowed, else ask."""
    if "deny" in first + second:
        return Effect.DENY
    if "ask" in first + second or agent:
        return Effect.ASK
    if granted and not as_root:
        return Effect.ALLOW
    return Effect.ALLOW if "allow" in first and "allow" in second else Effect.ASK


@proves("GATE-RULE-06", "GATE-GRANT-01")
@pytest.mark.parametrize(("as_root", "agent"), list(product([False, True], repeat=2)))
def test_every_combination_is_decided_as_the_table_says(as_root: bool, agent: bool) -> None:
    asked = attempt(["a", "x"], ["b", "x"], as_root=as_root, forward_agent=agent)
    for first, second, granted in product(SAID, SAID, [False, True]):
        book = [rule(effect, "a", root=as_root) for effect in first]
        book += [rule(effect, "b", root=as_root) for effect in second]
        grants = {3: asked.granted} if granted else {}
        decided = judge(book, grants, asked)
        assert decided.effect is expected(first, second, granted, as_root, agent)
        if decided.effect is Effect.ALLOW:
            assert decided.by.startswith("grant:3" if granted and not as_root else "rule:/r:1")


OTHERS = [
    ("another word", attempt(["a", "y"], ["b", "x"])),
    ("another command", attempt(["a", "x"])),
    ("one more command", attempt(["a", "x"], ["b", "x"], ["c"])),
    ("words that join alike", attempt(["a", "x", "b"], ["x"])),
    ("another environment", attempt(["a", "x"], ["b", "x"], env={"HOME": "/tmp"})),
    ("root", attempt(["a", "x"], ["b", "x"], as_root=True)),
    ("the agent", attempt(["a", "x"], ["b", "x"], forward_agent=True)),
]


@proves("GATE-GRANT-01")
@pytest.mark.parametrize(("name", "other"), OTHERS, ids=[name for name, _ in OTHERS])
def test_a_grant_covers_nothing_but_what_it_says(name: str, other: Attempt) -> None:
    granted = attempt(["a", "x"], ["b", "x"]).granted
    assert judge([], {1: granted}, attempt(["a", "x"], ["b", "x"])).by == "grant:1"
    assert judge([], {1: granted}, other).effect is Effect.ASK


@pytest.mark.parametrize(
    "other",
    [
        CALLER._replace(who=CallerId(4242, 8)),
        CALLER._replace(program="/usr/bin/python3"),
        CALLER._replace(asking="/usr/bin/curl"),
        CALLER._replace(session="beta"),
    ],
)
@proves("GATE-GRANT-01")
def test_a_grant_is_for_one_caller(other: GrantedCaller) -> None:
    granted = attempt(["a"]).granted._replace(caller=other)
    assert judge([], {1: granted}, attempt(["a"])).effect is Effect.ASK


@pytest.mark.parametrize(
    "file",
    [
        FileIdentity("/usr/bin/a /usr/bin/a", IDENTITY._replace(inode=99)),
        FileIdentity("/usr/bin/a /usr/bin/a", None),
        FileIdentity("/usr/bin/a /usr/bin/a", IDENTITY, "another digest"),
        FileIdentity("/usr/bin/a /tmp/a", IDENTITY),
    ],
)
@proves("GATE-GRANT-01")
def test_a_grant_ends_with_the_files_it_was_given_for(file: FileIdentity) -> None:
    other = attempt(["a"]).granted._replace(files=(file,))
    assert judge([], {1: other}, attempt(["a"])).effect is Effect.ASK


words = st.sampled_from(["x", "y", "-x", ""])
stages = st.lists(st.tuples(st.sampled_from("abc"), words).map(list), min_size=1, max_size=3)
books = st.lists(
    st.builds(
        rule,
        st.sampled_from(["allow", "ask", "deny"]),
        st.sampled_from("abc"),
        root=st.booleans(),
    ),
    max_size=6,
)


@proves("GATE-RULE-07")
@given(books, stages, stages, st.booleans(), st.booleans())
def test_explaining_and_deciding_never_differ(
    book: list[Rule], first: list[list[str]], second: list[list[str]], as_root: bool, granted: bool
) -> None:
    policy = StandingPolicy(book)
    if granted:
        policy.grants.give(attempt(*first).granted)
    for pipeline in (first, second, first):
        asked = attempt(*pipeline, as_root=as_root)
        explained = policy.explain(asked)
        assert policy.explain(asked) == explained
        assert policy.decide(asked) == explained


@proves("GATE-RULE-05")
def test_a_caller_that_leaves_its_tree_does_not_begin_to_count_again() -> None:
    policy = StandingPolicy([replace(rule("allow", "a"), limit=2)])
    asked = attempt(["a", "x"])
    others = [
        replace(asked, granted=asked.granted._replace(caller=CALLER._replace(who=CallerId(pid, 7))))
        for pid in (4242, 4243, 4244)
    ]
    decided = [policy.decide(each).effect for each in others]
    assert decided == [Effect.ALLOW, Effect.ALLOW, Effect.ASK]


@proves("GATE-RULE-05")
def test_each_command_of_a_pipeline_is_a_use() -> None:
    policy = StandingPolicy([replace(rule("allow", "a"), limit=3)])
    assert policy.decide(attempt(*[["a", "x"]] * 4)).effect is Effect.ASK
    assert policy.decide(attempt(["a", "x"], ["a", "x"])).effect is Effect.ALLOW
    assert policy.decide(attempt(["a", "x"], ["a", "x"])).effect is Effect.ASK
    assert policy.decide(attempt(["a", "x"])).effect is Effect.ALLOW
