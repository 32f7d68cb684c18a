"""Values are data wherever a template may have them; everywhere else the template is refused."""

import os
import subprocess
from pathlib import Path

import pytest

from stringd.actions.command_line import command_for, unsafe_holes
from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext, Names
from stringd.actions.shell_text import ComposedCommand, compose_command
from stringd.actions.templates import Inputs
from stringd.documents import Action
from tests.actions.holes import corpus
from tests.actions.support import action
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS

PLACE = ActionContext(
    "/act.x",
    "file:///home/app.md",
    Path("/"),
    names=Names(
        context={"HOME": "/h o", "CWD": "/", "CURRENT_FILE": "/a b.md", "ARGS": "{}"},
    ),
)


def declared(template: str) -> Action:
    return action(f"CLI {template}{corpus.FIELDS}")


def inputs(value: str) -> tuple[Inputs, tuple[str, ...]]:
    values = dict.fromkeys("qpdc", value) | {"n": "3", "m": "fast", "b": "true"}
    names = Names(context={**PLACE.names.context, "ARGS": value})
    place = ActionContext(PLACE.label, PLACE.uri, PLACE.directory, names=names)
    return Inputs(values, place), (value, "second")


def refusal_of(call: Action, value: str) -> ActionError | None:
    try:
        command_for(call, *inputs(value))
    except ActionError as error:
        return error
    return None


def run(command: ComposedCommand, value: str, directory: Path) -> bytes:
    """What the command prints, run for real in an empty directory."""
    base = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(directory), "LANG": "C.UTF-8"}
    own = {"STRING_HOME": "/h o", "CURRENT_FILE": "/a b.md", "CWD": "/", "ARGS": value}
    done = subprocess.run(
        ["/bin/bash", "-c", command.text],
        cwd=directory,
        env={**base, **own, **command.values},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )
    return done.stdout + done.stderr


def test_the_corpus_is_broad() -> None:
    places = {*corpus.DATA, *corpus.SHELL, *corpus.CODE}
    assert len(places) == len(corpus.DATA) + len(corpus.SHELL) + len(corpus.CODE)
    assert len(places) > 139


@pytest.mark.parametrize("template", corpus.DATA)
def test_a_value_arrives_as_data(template: str, tmp_path: Path) -> None:
    call = declared(template)
    assert unsafe_holes(call) == ()
    for value in corpus.VALUES:
        given, words = inputs(value)
        printed = run(command_for(call, given, words), value, tmp_path)
        assert not (tmp_path / "C").exists(), value
        # A substitution takes newlines off the end.
        assert os.fsencode(value.rstrip("\n")) in printed, (value, printed)


@pytest.mark.parametrize("template", corpus.DATA)
def test_a_value_that_looks_like_an_option_is_refused_or_data(
    template: str, tmp_path: Path
) -> None:
    call = declared(template)
    for value in corpus.OPTIONS:
        refused = refusal_of(call, value)
        if refused is None:
            printed = run(command_for(call, *inputs(value)), value, tmp_path)
            assert os.fsencode(value) in printed, (value, printed)
        else:
            assert refused.code == "INVALID_PAYLOAD"
            assert 'must not begin with "-"' in refused.message
        assert not (tmp_path / "C").exists(), value


@proves("ACT-41")
@pytest.mark.parametrize("template", [*corpus.SHELL, *corpus.CODE])
def test_a_place_where_a_value_could_become_a_command_is_refused(template: str) -> None:
    call = declared(template)
    assert unsafe_holes(call)
    given, words = inputs("harmless")
    with pytest.raises(ActionError) as refusal:
        command_for(call, given, words)
    assert refusal.value.code == "INVALID_PAYLOAD"
    assert "Safe spelling: " in refusal.value.message


@pytest.mark.parametrize("template", corpus.CODE)
def test_a_hole_that_is_marked_as_code_is_admitted_there(template: str) -> None:
    assert unsafe_holes(declared(template.replace("{q}", "{c}"))) == ()


@pytest.mark.parametrize("template", corpus.SHELL)
def test_no_mark_admits_a_hole_to_a_shell(template: str) -> None:
    assert unsafe_holes(declared(template.replace("{q}", "{c}")))


# A control: without the check these do run the value.
EXECUTES = {
    "echo $(( {q} ))": "a[$(touch C)]",
    "let x={q}": "a[$(touch C)]",
    "a[{q}]=1": "a[$(touch C)]",
    "[ -v {q} ]": "a[$(touch C)]",
    "[[ {q} -eq 1 ]]": "a[$(touch C)]",
    "printf -v {q} x": "a[$(touch C)]",
    "read {q} <<< x": "a[$(touch C)]",
    "a=(1); unset {q}": "a[$(touch C)]",
    "declare -i x={q}": "a[$(touch C)]",
    "RANDOM={q}": "a[$(touch C)]",
    "eval {q}": "touch C",
    "trap {q} EXIT": "touch C",
    "bash -c {q}": "touch C",
    "bash -c 'echo {q}'": ";touch C",
    "echo {q} | sh": "touch C",
    "bash <<< {q}": "touch C",
    "x={q}; echo $(( x ))": "a[$(touch C)]",
    'x={q}; echo "${x@P}"': "$(touch C)",
    'x={q}; echo "${!x}"': "a[$(touch C)]",
    "x={q}; y=x; echo $(( y ))": "a[$(touch C)]",
    "bash -c 'eval \"$1\"' _ {q}": "touch C",
    "echo {q} | xargs -I% sh -c 'echo %'": "$(touch C)",
    "echo {q} > f; bash f": "touch C",
    "PS4={q}; set -x; :": "$(touch C)",
    "find . -maxdepth 0 -exec sh -c {q} \\;": "touch C",
    "awk 'BEGIN {x{q}}'": '; system("touch C")',
    "sed {q} /etc/hostname": "1e touch C",
}


@pytest.mark.parametrize("template", EXECUTES)
def test_the_attacks_work_where_nothing_is_checked(template: str, tmp_path: Path) -> None:
    value = EXECUTES[template]
    given, words = inputs(value)
    run(compose_command(template, given, words), value, tmp_path)
    assert (tmp_path / "C").exists()
    with pytest.raises(ActionError):
        command_for(declared(template), *inputs(value))
