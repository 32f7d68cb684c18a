"""`/set`: variables of a topic, and persistent ones."""

import json
import stat

from tests.requirements import proves
from tests.support.person import Person


@proves("CMD-02", "CMD-21")
def test_an_assignment_is_echoed(person: Person) -> None:
    assert person.gets('/set {city} = "Seoul"') == '{city} = "Seoul"'
    assert person.gets("/set name='Ann B'") == '{name} = "Ann B"'
    assert person.gets("/set {n}=  5 ") == '{n} = "5"'
    assert person.gets('/set q = "open') == '{q} = ""open"'


@proves("CMD-20")
def test_variables_are_listed_in_order_of_assignment(person: Person) -> None:
    assert person.gets("/set") == "No variables set."
    person.gets("/set\n{b} = 2\n\n{a} = 1")
    assert person.gets("/set") == 'Variables\n---\n{b} = "2"\n{a} = "1"'
    assert person.gets("/set", "file:other") == "No variables set."


def test_fenced_values_keep_their_lines(person: Person) -> None:
    text = "/set {first} = 1\n```{poem}\n  one\n\ntwo\n```\n````$NOTE\n```\n````"
    assert person.gets(text) == '{first} = "1"\n{poem} = (3 lines)\n$NOTE = "```"'
    assert person.gets('/exec printf %s "$poem"').endswith("\n---\n  one\n\ntwo")


@proves("DEF-20")
def test_a_bad_line_applies_nothing(person: Person) -> None:
    refused = person.fails("/set\n{a} = 1\n$TOKEN = abcdef\nnonsense")
    assert refused.text == (
        "ERROR(INVALID_PAYLOAD): Invalid assignment: nonsense\n"
        'Usage: /set {var} = "value" or /set $VAR = "value"'
    )
    assert person.gets("/set") == "No variables set."
    assert not (person.home / "config.json").exists()


@proves("DEF-19")
def test_persistent_values_are_stored_by_scope_and_masked(person: Person) -> None:
    person.put("config.json", json.dumps({"apps": {"w": "x"}, "other": 1}))
    said = person.gets('/set $TOKEN = "secret-value"')
    assert said.startswith('$TOKEN = "')
    assert said.endswith('" (global)')
    assert "secret-value" not in said + person.gets("/set")
    assert person.gets("/set $KEY = abcdef", "app:w:kr").endswith(" (w:kr)")
    assert person.gets("/set $KEY = uvwxyz", "app:w").endswith(" (w)")
    config = person.home / "config.json"
    assert json.loads(config.read_text()) == {
        "apps": {"w": "x"},
        "other": 1,
        "env": {"TOKEN": "secret-value"},
    }
    assert config.read_text().startswith('{\n  "apps"')
    assert config.read_text().endswith("}\n")
    assert stat.S_IMODE(config.stat().st_mode) == 0o600
    assert json.loads(person.read("apps/w/kr/env.json")) == {"KEY": "abcdef"}
    assert stat.S_IMODE((person.home / "apps/w/kr").stat().st_mode) == 0o700
    assert "$TOKEN" in person.gets("/set", "app:w:kr")
    assert "$KEY" not in person.gets("/set")


def test_a_broken_store_is_named_and_left_alone(person: Person) -> None:
    path = person.put("config.json", "{broken")
    refused = person.fails("/set $TOKEN = abc")
    assert refused.code == "LOAD_ERROR"
    assert str(path) in refused.message
    assert path.read_text() == "{broken"
