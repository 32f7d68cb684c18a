"""The door to a command: what a call may put into it, and what its author is told."""

from collections.abc import Mapping
from pathlib import Path

import pytest

from stringd.actions.authoring import action_diagnostics
from stringd.actions.command_line import CONTEXT_NAMES, command_for, unsafe_holes
from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext, Value
from stringd.documents import parse
from tests.actions.support import action, inputs, place
from tests.requirements import proves

EXAMPLES = Path(__file__).parents[2] / "examples/apps"


def text(declared: str, values: Mapping[str, Value], at: ActionContext | None = None) -> str:
    return command_for(action(declared), inputs(values, at), ()).text


def refusal(declared: str, values: Mapping[str, Value], at: ActionContext | None = None) -> str:
    with pytest.raises(ActionError) as failure:
        text(declared, values, at)
    assert failure.value.code == "INVALID_PAYLOAD"
    return failure.value.message


@proves("ACT-42")
@pytest.mark.parametrize(
    "declared",
    [
        "CLI ls {x}\n  x: string",
        "CLI ls {x}\n  x: path",
        "CLI ls {x}\n  x: tuple",
        "CLI ls {x}\n  x: own_type",
        "CLI ls {x}",
        'CLI ls "{x}"\n  x: string',
        "CLI ls {x}.txt\n  x: string",
        "CLI ls {...args}\n  x: string",
        'CLI v={x}; ls "$v"\n  x: string',
        "CLI bash -c 'ls \"$1\"' _ {x}\n  x: string",
        "CLI timeout 5 ls {x}\n  x: string",
        "CLI find {x} -name a\n  x: string",
        "CLI find -- {x}\n  x: string",
    ],
)
def test_a_value_that_begins_with_a_dash_is_refused(declared: str) -> None:
    assert refusal(declared, {"x": "-rf"}).startswith('--x must not begin with "-"')
    assert text(declared, {"x": "r-f"})


@proves("ACT-42")
@pytest.mark.parametrize(
    "declared",
    [
        "CLI ls {x}\n  x: string (dash: true)",
        "CLI ls {x}\n  x: string (required, dash:true)",
        'CLI ls {x}\n  x: string = "-rf"',
        "CLI ls -- {x}\n  x: string",
        "CLI timeout 5 ls -- {x}\n  x: string",
        "CLI ls --sort={x}\n  x: string",
        "CLI ls 'a {x}'\n  x: string",
        "CLI X={x} ./tool\n  x: string",
        "CLI cat <<< {x}\n  x: string",
        "CLI [ {x} = a ]\n  x: string",
        "CLI grep -e {x} file\n  x: string",
        "CLI find . -name {x}\n  x: string",
        "CLI bash -c 'ls -- \"$1\"' _ {x}\n  x: string",
        "CLI ls {x}\n  x: string (-rf|-l)",
    ],
)
def test_a_dash_is_fine_where_it_cannot_be_an_option_or_the_author_allows_it(
    declared: str,
) -> None:
    assert text(declared, {"x": "-rf"})


def test_a_number_may_be_negative() -> None:
    assert text("CLI head -n {x}\n  x: number", {"x": "-5"}) == "head -n -5"


def test_a_path_that_begins_with_a_dash_has_another_spelling() -> None:
    assert "Write ./-x for the file" in refusal("CLI ls {x}\n  x: path", {"x": "-x"})
    assert "dash: true" in refusal("CLI ls {x}\n  x: string", {"x": "-x"})


def test_a_value_of_a_listed_type_is_written_as_it_is() -> None:
    declared = "CLI bash -c 'run {m} {n} {b}' >{n}\n  m: fast|slow\n  n: number\n  b: boolean"
    values = {"m": "slow", "n": "1.5", "b": "true"}
    assert text(declared, values) == "bash -c 'run slow 1.5 true' >1.5"
    assert text("CLI ls {n}>x\n  n: number", {"n": "2"}) == 'ls "2">x'


@pytest.mark.parametrize("value", ["a[$(touch C)]", ("1", "a[$(touch C)]"), ""])
def test_what_does_not_fit_its_type_is_not_exempt(value: Value) -> None:
    """A default, a file or a tuple may hold more than a caller may type."""
    declared = "CLI echo $(( {n} + 1 ))\n  n: number"
    assert text(declared, {"n": "3"}) == "echo $(( 3 + 1 ))"
    assert "bash evaluates this" in refusal(declared, {"n": value})


def test_text_in_braces_is_a_hole_only_when_something_fills_it() -> None:
    declared = "CLI awk '{print}' {file}\n  file: path"
    assert unsafe_holes(action(declared)) == ()
    assert text(declared, {"file": "a"}).startswith("awk '{print}'")
    filled = place(variables={"print": "x"})
    assert "{print}" in refusal(declared, {"file": "a", "print": "x"})
    assert "{print}" in refusal(declared, {"file": "a"}, filled)


def test_an_unsafe_hole_is_refused_before_anybody_fills_it() -> None:
    assert "Nothing was run" in refusal("CLI eval {x}\n  x: string", {})
    assert "$ARGS" in refusal("CLI x=$ARGS", {}, place(context={"ARGS": ""}))


def test_names_of_the_owner_and_of_the_place_are_no_code_for_shells_either() -> None:
    at = place(stored={"CITY": "Oslo"}, context={"CURRENT_FILE": "/a;touch C"})
    assert "$CITY" in refusal('CLI bash -c "echo $CITY"', {}, at)
    assert "$CURRENT_FILE" in refusal('CLI bash -c "cat $CURRENT_FILE"', {}, at)
    assert text('CLI cat "$CURRENT_FILE"; $CITY/run $CITY', {}, at)


def test_the_author_is_told_the_line_and_the_safe_spelling() -> None:
    document = parse(
        "# App\n\n```act.a\nCLI echo {x}\n  x: string\n```\n\n"
        '```act.b\n\nCLI bash -c "ls {x}"\n  x: string\n```\n```act.b\nCLI eval {x}\n```\n'
    )
    found = [str(each) for each in action_diagnostics(document)]
    assert len(found) == 1
    assert found[0].startswith(
        "Line 10: UNSAFE_HOLE: act.b: {x}: it becomes part of a command line"
    )
    assert "Safe spelling: bash -c '… \"$1\" …' _ {x}" in found[0]


@pytest.mark.parametrize("page", sorted(EXAMPLES.rglob("*.md")), ids=lambda page: page.parent.name)
def test_the_example_apps_have_no_unsafe_hole(page: Path) -> None:
    assert action_diagnostics(parse(page.read_text(encoding="utf-8"))) == ()


@pytest.mark.parametrize(
    "command",
    [
        "Q={q} python3 -c \"import os; print(os.environ['Q'])\"",
        'curl -s "https://h.test/{q}?n={n}" | jq -r \'.a[] | "\\(.b)"\' && echo ok || echo no',
        "yt-dlp \"ytsearch{n}:{q}\" --print '%(id)s' 2>/dev/null",
        './kanban board $OWNER "{status}" {limit}',
        "./tool run -- {flags}",
        "python3 $HOME/packages/x/run.py {title}",
        "python3 -c \"d={'a':1}; print(f'{d}', '{x:.1f}')\" {q}",
        'gh issue create --title "{title}" --body "{body}"',
    ],
)
def test_commands_of_known_apps_are_admitted(command: str) -> None:
    names = ("q", "status", "flags", "title", "body")
    fields = "".join(f"\n  {name}: string" for name in names)
    numbers = "\n  n: number\n  limit: number"
    assert unsafe_holes(action(f"CLI {command}{fields}{numbers}"), {"OWNER": "me"}) == ()


def test_the_names_of_the_place_are_known_to_authors_too() -> None:
    for name in CONTEXT_NAMES:
        assert unsafe_holes(action(f'CLI bash -c "x ${name}"'))
