"""The program bash gets depends on its author alone, whatever the caller's values are."""

import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stringd.actions.cli import command_environment
from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext, Names
from stringd.actions.shell_text import compose_command
from stringd.actions.templates import Inputs
from tests.requirements import proves
from tests.support.daemon import WAIT_SECONDS

NASTY = (
    "'", '"', "`", "$", "\\", "\n", ";", "&", "|", "(", ")", "<", ">", "#", "!", "{", "}", "*",
    "?", "[", "]", "~", "=", " ", "\t", "-", "--", "$(touch pwned)", "`touch pwned`", "${HOME}",
    "';touch pwned;'", '";touch pwned;"', "\\'", '\\"', "{q}", "{...args}", "$TOKEN", "x[$(id)]",
    "2", "if", "é", "\u202e", "\x01", "\x1b[31m", "]]", "EOF", "\\\n",
)  # fmt: skip
values = st.one_of(
    st.lists(st.sampled_from(NASTY), max_size=6).map("".join),
    st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
)


class Case(NamedTuple):
    """A template and what its commands print, each word followed by a vertical tab."""

    template: str
    prints: Callable[[str], list[str]]


def one(value: str) -> list[str]:
    return [value]


TOKEN = "s $(touch pwned) '"
P = "printf '%s\\v'"
CASES = {
    "bare": Case(f"{P} {{q}}", one),
    "twice": Case(f"{P} {{q}} -x {{q}}", lambda v: [v, "-x", v]),
    "double": Case(f'{P} --body "{{q}}"', lambda v: ["--body", v]),
    "double with text": Case(f'{P} "Hi {{q}}!"', lambda v: [f"Hi {v}!"]),
    "single": Case(f"{P} 'Hi {{q}}!'", lambda v: [f"Hi {v}!"]),
    "ansi": Case(f"{P} $'a\\tb {{q}}'", lambda v: [f"a\tb {v}"]),
    "locale": Case(f'{P} $"a {{q}}"', lambda v: [f"a {v}"]),
    "glued": Case(f'{P} "yts{{n}}:{{q}}" pre{{q}}post', lambda v: [f"yts3:{v}", f"pre{v}post"]),
    "env prefix": Case("""Q={q} bash -c 'printf "%s\\v" "$Q"'""", one),
    "pipeline": Case(f"{P} {{q}} | cat && {P} ok || {P} never", lambda v: [v, "ok"]),
    "substitution": Case(f'{P} "$({P} {{q}})"', lambda v: [f"{v}\v"]),
    "substitution in double": Case(f'{P} "a $(printf %s. "{{q}}") b"', lambda v: [f"a {v}. b"]),
    "backquotes": Case(f"{P} \"`printf %s. '{{q}}'`\"", lambda v: [f"{v}."]),
    "redirect": Case(f"{P} {{q}}>/dev/stdout 2>&1", one),
    "comment": Case(f"{P} ok # {{q}}", lambda _: ["ok"]),
    "group": Case(f"({P} {{q}}; {P} '{{q}}')", lambda v: [v, v]),
    "loop": Case(f"for x in {{q}} b; do {P} \"$x\"; done", lambda v: [v, "b"]),
    "range": Case(f"{P} {{1..{{n}}}}", lambda _: ["1", "2", "3"]),
    "arithmetic": Case(f"{P} $(( {{n}} + 1 ))", lambda _: ["4"]),
    "all": Case(f"{P} {{...args}}", lambda v: ["--q", v, "--n", "3"]),
    "nested script": Case("bash -c 'printf \"%s\\v\" \"$1\"' _ {q}", one),
    "program text": Case(f"{P} '{{\"a\":1}} {{}} {{x:.1f}} {{r[\"id\"]}}' {{q}}",
                         lambda v: ['{"a":1} {} {x:.1f} {r["id"]}', v]),
    "stored": Case(f"{P} \"$TOKEN\" '$TOKEN' {{q}}", lambda v: [TOKEN, TOKEN, v]),
    "home": Case(f"{P} $HOME/x {{q}}", lambda v: ["/h o/x", v]),
    "untouched": Case(f"X=5; {P} ${{X}} %(id)s {{mid}} {{q}}".replace("%(id)s", "'%(id)s'"),
                      lambda v: ["5", "%(id)s", "{mid}", v]),
    "test": Case(f'[[ "{{q}}" == "{{q}}" ]] && {P} same', lambda _: ["same"]),
    "here string": Case(f"IFS= read -r -d '' x <<< \"{{q}}\"; {P} \"${{x%$'\\n'}}\"", one),
    "escaped": Case(f'{P} "\\{{q}}" \\{{q}}', lambda _: ["\\{q}", "{q}"]),
}  # fmt: skip
PLACE = ActionContext(
    "/act.x",
    "file:///x.md",
    Path("/"),
    names=Names(stored={"TOKEN": TOKEN}, context={"HOME": "/h o", "ARGS": ""}),
)


def run(template: str, value: str, directory: Path) -> subprocess.CompletedProcess[bytes]:
    inputs = Inputs({"q": value, "n": "3"}, PLACE)
    command = compose_command(template, inputs, ("a b", value))
    own = {"TOKEN": PLACE.names.stored["TOKEN"], "STRING_HOME": "/h o"}
    environment = command_environment(os.environ, own, command.values)
    return subprocess.run(
        ["/bin/bash", "-c", command.text],
        cwd=directory,
        env=environment,
        capture_output=True,
        timeout=WAIT_SECONDS,
        check=False,
    )


@proves("ACT-18")
@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=values)
@pytest.mark.parametrize("name", CASES)
def test_any_value_reaches_the_command_as_data(name: str, tmp_path: Path, value: str) -> None:
    case = CASES[name]
    done = run(case.template, value, tmp_path)
    wanted = "".join(f"{word}\v" for word in case.prints(value))
    assert (done.returncode, done.stdout.decode()) == (0, wanted), done.stderr.decode()
    assert not list(tmp_path.iterdir())


@pytest.mark.soak
@settings(
    max_examples=2000, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=values)
@pytest.mark.parametrize("name", CASES)
def test_thousands_of_values_reach_the_command_as_data(
    name: str, tmp_path: Path, value: str
) -> None:
    case = CASES[name]
    done = run(case.template, value, tmp_path)
    assert done.stdout.decode() == "".join(f"{word}\v" for word in case.prints(value))
    assert not list(tmp_path.iterdir())


@given(value=values)
@pytest.mark.parametrize("name", CASES)
def test_the_program_text_is_the_same_for_every_value_that_is_no_number(
    name: str, value: str
) -> None:
    def text(given: str) -> str:
        inputs = Inputs({"q": given, "n": "3"}, PLACE)
        return compose_command(CASES[name].template, inputs, ()).text

    if not value.lstrip("-").replace(".", "").isdigit():
        assert text(value) == text("plain")


def test_a_nul_character_is_refused() -> None:
    with pytest.raises(ActionError, match="NUL"):
        compose_command("echo {q}", Inputs({"q": "a\0b"}, PLACE))


def test_an_option_bundle_without_value_is_an_empty_word(tmp_path: Path) -> None:
    assert run("printf '[%s]' -- {q}", "", tmp_path).stdout == b"[--][]"


def test_words_of_args_are_quoted_one_by_one(tmp_path: Path) -> None:
    done = run("printf '[%s]' $ARGS", "$(touch pwned);x", tmp_path)
    assert done.stdout == b"[a b][$(touch pwned);x]"
    assert not list(tmp_path.iterdir())


def test_a_hole_nobody_fills_stays_as_written(tmp_path: Path) -> None:
    assert run("printf '%s' {nothing} {q}", "v", tmp_path).stdout == b"{nothing}v"
