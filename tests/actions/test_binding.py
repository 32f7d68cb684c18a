"""From what a caller typed to the values an action runs with."""

import pytest

from stringd.actions.binding import bind, read_arguments
from stringd.actions.errors import ActionError
from stringd.actions.place import ActionContext, ListValue, Value
from tests.actions.support import Files, action, place
from tests.requirements import proves

FIELDS = (
    "GET http://h.test/\n  title, -T: string (required)\n  n: number (optional, min:1, max:5)\n"
    "  on: boolean\n  card, -c: tuple\n"
)


def values(text: str, arguments: str, at: ActionContext | None = None) -> dict[str, Value]:
    declared = action(text)
    return dict(bind(declared, read_arguments(declared, arguments), at or place()).values)


def message(text: str, arguments: str, at: ActionContext | None = None) -> str:
    with pytest.raises(ActionError) as failure:
        values(text, arguments, at)
    return failure.value.message


def test_flags_aliases_and_positions_fill_fields() -> None:
    assert values(FIELDS, "-T 'a b' --n=3 --on") == {"title": "a b", "n": "3", "on": "true"}
    assert values(FIELDS, "--n 2 first") == {"n": "2", "title": "first"}


def test_a_path_in_the_users_home_is_spelled_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    cli = "CLI cat {a} {b} {c}\n  a: path\n  b: string\n  c: path = ~/d\n"
    assert values(cli, "--a ~/x --b ~/x") == {"a": "/home/me/x", "b": "~/x", "c": "/home/me/d"}
    assert values(cli, "--a ~/../x --c ~other/x") == {"a": "/home/x", "c": "~other/x"}
    assert values(cli, "--a ~")["a"] == "/home/me"
    assert values("GET http://h.test/{a}\n  a: path\n", "--a ~/x") == {"a": "~/x"}


def test_shortcuts_stand_for_what_they_hold() -> None:
    at = place(shortcuts={"item-1": ("a", "b"), "x": "y"}, variables={"v": "@gone"})
    assert values(FIELDS, "@x --card @item-1", at) == {"title": "y", "card": ("a", "b")}
    assert values(FIELDS, '"@joe said hi"', at) == {"title": "@joe said hi"}
    assert values(FIELDS, "@@joe", at) == {"title": "@joe"}
    assert values(FIELDS, "{v}", at) == {"title": "@gone"}
    assert message(FIELDS, "@joe", at) == "Unknown shortcut: @joe\nAvailable: @item-1, @x"
    many = place(shortcuts={f"s{n}": "v" for n in range(13)})
    assert message(FIELDS, "@joe", many).endswith("@s11, ...")


@proves("ACT-20")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("t --n x", '--n must be a number; got "x".'),
        ("t --n 0", '--n must be at least 1; got "0".'),
        ("t --n 6", '--n must be at most 5; got "6".'),
        ("t --on maybe", '--on must be true or false; got "maybe".'),
        ("t --card $HOME", "$var cannot be used in command arguments."),
        ("t --n", "Flag --n requires a value (declared type: number)."),
    ],
)
def test_unfit_values_are_refused(arguments: str, problem: str) -> None:
    assert message(FIELDS, arguments).startswith(problem)


def test_words_no_field_is_left_for_are_counted() -> None:
    assert message(FIELDS, "a 2 --on --card x y z").splitlines()[1] == (
        "Expected up to 2 positional values (fields: title, n, on, card), got 4."
    )
    assert message("GET http://h.test/\n  q: string\n", "--q a b").splitlines()[1] == (
        "Expected up to 0 positional values (field: q), got 1."
    )


def test_money_is_no_variable() -> None:
    assert values(FIELDS, "'costs $5'") == {"title": "costs $5"}


def test_defaults_know_variables() -> None:
    text = 'GET http://h.test/\n  city: string "City" = "$CITY"\n  who: string = "{name}!"\n'
    at = place(stored={"CITY": "Seoul"}, variables={"name": "Ann"})
    assert values(text, "", at) == {"city": "Seoul", "who": "Ann!"}
    assert message(text, "", place(in_app=True)) == (
        "Unresolved environment variable(s) in field default:\n  $CITY\n\n"
        'Set it from this app session:\n  /set $CITY = "..."\n'
        "Or pass the field explicitly: /act.x --city <value>"
    )
    assert values(text, "--city Oslo") == {"city": "Oslo", "who": "{name}!"}


def test_files_are_data() -> None:
    at = place(files=Files({"f": b"{v} $HOME @x"}), variables={"v": "no"})
    assert values(FIELDS, "--title-file f", at) == {"title": "{v} $HOME @x"}
    assert message(FIELDS, "t --other-file f", at).startswith("Unknown flag: --other-file.")


@pytest.mark.parametrize(
    ("text", "arguments", "problem"),
    [
        (FIELDS, "t --titel x", "Unknown flag: --titel. Did you mean --title?"),
        (FIELDS, "t --nothing x", "Unknown flag: --nothing."),
        (FIELDS, "t -z x", "Unknown flag: -z."),
        ("CLI date", "--utc", "Unknown flag: --utc.\n/act.x takes no flags."),
    ],
)
def test_a_flag_that_nothing_takes_is_refused(text: str, arguments: str, problem: str) -> None:
    assert message(text, arguments).startswith(problem)


@pytest.mark.parametrize(
    "text",
    [
        "CLI tool {...args}\n  title: string",
        "CLI tool $ARGS\n  title: string",
        "GET http://h.test/{extra}\n  title: string",
        "GET http://h.test/",
    ],
)
def test_an_action_may_take_flags_it_does_not_declare(text: str) -> None:
    assert values(text, "--extra 1") == {"extra": "1"}


def test_what_is_in_single_quotes_is_text() -> None:
    assert values(FIELDS, "'$HOME'") == {"title": "$HOME"}
    assert message(FIELDS, '"$HOME"').startswith("$var cannot be used")


LISTS = (
    "POST http://h.test/\n  tags: list (min:1, max:3)\n  notes: lines\n  data: json\n"
    "  kinds: list (a|b)\n"
)


@proves("ACT-47")
@pytest.mark.parametrize(
    ("arguments", "field", "items", "json"),
    [
        ("--tags 'a, b,,c'", "tags", ("a", "b", "c"), '["a","b","c"]'),
        ("""--tags '["x, y", 2, {"k": 1}]'""", "tags", ("x, y", "2", '{"k":1}'), None),
        ("--notes 'one\r\n\n two '", "notes", ("one", " two"), '["one"," two"]'),
        ("--kinds b,a", "kinds", ("b", "a"), '["b","a"]'),
    ],
)
def test_lists_are_items(arguments: str, field: str, items: tuple[str, ...], json: str) -> None:
    value = values(LISTS, arguments)[field]
    assert isinstance(value, ListValue)
    assert tuple(value) == items
    assert value.json == (json or '["x, y", 2, {"k": 1}]')


@proves("ACT-47")
def test_a_list_comes_from_a_file_a_default_or_a_shortcut_too() -> None:
    files = place(files=Files({"n.txt": b"one\ntwo\n"}), shortcuts={"t": ("p", "q")})
    assert values(LISTS, "--notes-file n.txt --tags @t", files) == {
        "tags": ("p", "q"),
        "notes": ("one", "two"),
    }
    assert values("GET http://h.test/\n  tags: list = 'a, b'\n", "") == {"tags": ("a", "b")}


@proves("ACT-47")
@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ("--tags ''", "--tags must have at least 1 item"),
        ("--tags a,b,c,d", "--tags must have at most 3 items"),
        ("""--tags '["a"'""", '--tags must be a list: a, b or ["a", "b"]'),
        ("--kinds a,c", "--kinds may have only: a, b"),
        ("--data '{x'", "--data must be JSON"),
    ],
)
def test_lists_and_json_are_checked(arguments: str, problem: str) -> None:
    assert message(LISTS, arguments).startswith(problem)


TUPLE = "GET http://h.test/{item[0]}/{item[1]}\n  item: tuple (required)\n"


@proves("ACT-48")
def test_a_tuple_that_is_too_short_is_refused() -> None:
    at = place(shortcuts={"two": ("a", "b"), "one": "a"})
    assert values(TUPLE, "@two", at) == {"item": ("a", "b")}
    assert values(TUPLE, '["a", "b"]', at) == {"item": ("a", "b")}
    for given in ("@one", "a", '["a"]'):
        assert message(TUPLE, given, at) == (
            '--item takes 2 values together; got 1: "a".\n'
            "Usage: /act.x --item @<shortcut of an answer>, or a list: "
            '--item ["a", "b"]'
        )
    whole = TUPLE.replace("/{item[0]}/{item[1]}", "/{item}")
    assert values(whole, "a", at) == {"item": "a"}
