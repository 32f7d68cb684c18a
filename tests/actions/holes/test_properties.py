"""Random commands made of pieces: where the check admits a value, it arrives as data."""

import os
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stringd.actions.command_line import command_for, unsafe_holes
from tests.actions.holes.corpus import VALUES
from tests.actions.holes.test_corpus import declared, inputs, refusal_of, run

FATAL = (b"syntax error", b"bad substitution", b"unbound variable", b"invalid arithmetic")
PRINT = "printf '%s\\v'"
holes = st.sampled_from(
    ("{q}", '"{q}"', "'{q}'", "a{q}b", '"a {q} $x"', '"$x"', "$x", "${x}", '"${x}"', '"$1"', "$1")
)
words = st.one_of(
    holes,
    st.sampled_from(("a", "-n", "--", "3", "'lit $x'", '"$HOME"', "$((x))", '"${x@P}"', "${x:1}")),
    holes.map(lambda hole: f'"$(echo {hole})"'),
    holes.map(lambda hole: f"$(echo {hole})"),
    holes.map(lambda hole: f"$(( {hole} ))"),
    holes.map(lambda hole: f"<(echo {hole})"),
    holes.map(lambda hole: f"x[{hole}]"),
)
commands = st.one_of(
    st.lists(words, min_size=1, max_size=3).map(lambda each: " ".join(("echo", *each))),
    st.tuples(st.sampled_from(("x", "y", "a[1]", "RANDOM")), words).map("=".join),
    st.tuples(
        st.sampled_from(
            (
                "eval", "let", "read", "unset", "export", "declare", "declare -i", "trap", "set --",
                "bash -c", "bash -c 'echo \"$1\"' _", "sh -c 'echo $1' _", "env", "command", "exec",
                "cat <<<", "bash <<<", "test -n", "test -v", "[ -v", "echo >", "echo >&", "source",
            )
        ),
        words,
    ).map(lambda pair: " ".join(pair) + (" ]" if pair[0].startswith("[") else "")),
    words.map(lambda word: f"[[ {word} == b ]]"),
    words.map(lambda word: f"[[ b == {word} ]]"),
    words.map(lambda word: f"[[ {word} -eq 1 ]]"),
    words.map(lambda word: f"(( {word} ))"),
    words.map(lambda word: f"case {word} in {word}) :;; esac"),
    words,
)  # fmt: skip
joined = st.recursive(
    commands,
    lambda inner: st.one_of(
        st.tuples(inner, st.sampled_from(("; ", " && ", " || ", " | ", " & ")), inner).map("".join),
        inner.map(lambda each: f"( {each} )"),
        inner.map(lambda each: f"{{ {each}; }}"),
        inner.map(lambda each: f"if {each}; then {each}; fi"),
        st.tuples(words, inner).map(lambda pair: f"for x in {pair[0]}; do {pair[1]}; done"),
        inner.map(lambda each: f"f() {{ {each}; }}; f {{q}}"),
        inner.map(lambda each: f"while read -r x; do {each}; done <<< {{q}}"),
    ),
    max_leaves=4,
)


WITHIN = (
    "bash -c '%s' _ {q}",
    "x={q} bash -c '%s'",
    "env x={q} sh -c '%s' _ {q}",
    "trap '%s' EXIT; x={q}",
    "( set -- {q}; %s )",
)


def inside(template: str, outer: str) -> str:
    """The same command as a script of its own, which gets the value by another way."""
    return outer.replace("%s", template.replace("'", "").replace("{q}", '"$1"'))


whole = st.one_of(joined, st.builds(inside, joined, st.sampled_from(WITHIN)))


def arrives(template: str, value: str) -> None:
    """Whatever is admitted leaves no trace, and the last command prints the value."""
    call = declared(f":; {template}; {PRINT} {{q}}")
    if unsafe_holes(call) or refusal_of(call, value) is not None:
        return
    with TemporaryDirectory() as folder:
        printed = run(command_for(call, *inputs(value)), value, Path(folder))
        assert not (Path(folder) / "C").exists(), template
    # Some commands end bash before the last one, or are not its language at all.
    ended = "exec" in template or any(error in printed for error in FATAL)
    assert ended or os.fsencode(value) in printed, (template, printed)


@settings(max_examples=150, deadline=None)
@given(template=whole, value=st.sampled_from(VALUES))
def test_what_is_admitted_is_data(template: str, value: str) -> None:
    arrives(template, value)


@pytest.mark.soak
@settings(max_examples=5000, deadline=None)
@given(template=whole, value=st.sampled_from(VALUES))
def test_what_is_admitted_is_data_in_thousands_of_commands(template: str, value: str) -> None:
    arrives(template, value)
