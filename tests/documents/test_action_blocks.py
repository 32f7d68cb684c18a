"""Action blocks: every spelling authors use, read into typed values."""

import pytest

from stringd.documents import Action, Field, parse
from stringd.documents.action_blocks import LONGEST_LINE, parse_action, parse_field


def action(text: str) -> Action:
    found, unread = parse_action("x", text)
    assert found is not None
    assert unread == []
    return found


def test_the_shop() -> None:
    source = (
        "```act.find\n"
        'GET http://127.0.0.1:9000/items?kind={kind} -H "X-Key: $SHOP_KEY"\n'
        '  kind, -k: string (required) "Item kind"\n'
        '  limit: number "How many" = "3"\n'
        "```\n\n```act.find.response\n{total} items\n```\n"
    )
    assert parse(source).actions == {
        "find": Action(
            "find",
            "GET",
            "http://127.0.0.1:9000/items?kind={kind}",
            (("X-Key", "$SHOP_KEY"),),
            None,
            (
                Field("kind", "string", True, "Item kind", None, "k"),
                Field("limit", "number", False, "How many", "3"),
            ),
            "{total} items",
        )
    }


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("  q: string", Field("q")),
        ('  dir, -d:  string "…" = "."', Field("dir", description="…", default=".", alias="d")),
        ('  title, -T: string (required) "t"', Field("title", "string", True, "t", alias="T")),
        (
            '  limit: number (optional, max:50) "n"',
            Field("limit", "number", description="n", maximum=50),
        ),
        ("  n: number (min:1, max:9.5)", Field("n", "number", minimum=1, maximum=9.5)),
        ('  q: string "Search terms" (required)', Field("q", "string", True, "Search terms")),
        ("  u: string (c|f) = c", Field("u", default="c", choices=("c", "f"))),
        ("  u: c|f", Field("u", choices=("c", "f"))),
        ("  q: string = 'single'", Field("q", default="single")),
        ("  q: string = New York", Field("q", default="New York")),
        ('  q: string = 5 "after"', Field("q", description="after", default="5")),
        ('  cursor: string "next page" = ""', Field("cursor", description="next page", default="")),
        ("\tcard, -c: tuple (required)", Field("card", "tuple", True, alias="c")),
        ('  q: "no type" (required)', Field("q", "string", True, "no type")),
        ("  q: string required", Field("q", "string", True)),
        ("  q: string (required, dash: true)", Field("q", "string", True, dash=True)),
        ("  q: string (dash:true, code: true)", Field("q", dash=True, code=True)),
        ("  q: string dash: true", Field("q", dash=True)),
        ("  q: string (dash: false)", Field("q")),
    ],
)
def test_field_lines(line: str, expected: Field) -> None:
    assert parse_field(line) == expected


@pytest.mark.parametrize(
    "line", ["q: string", "  just words", "  q:", "  q: string (maybe)", "  -: x"]
)
def test_lines_that_are_no_field(line: str) -> None:
    assert parse_field(line) is None


def test_an_unreadable_line_is_reported_where_it_stands() -> None:
    document = parse("text\n```act.a\nGET https://h.test\n  fine: string\n  ???\n```\n")
    assert [str(each) for each in document.diagnostics] == [
        'Line 5: INVALID_FIELD: could not read line of action "a": ???'
    ]
    assert [field.name for field in document.actions["a"].fields] == ["fine"]


def test_headers_and_bodies_on_the_first_line() -> None:
    found = action('POST https://h.test/a -H "A: b: c" -H "none" -d \'{"t":"{x}"}\' -d \'late\'')
    assert found.target == "https://h.test/a"
    assert found.headers == (("A", "b: c"),)
    assert found.body == '{"t":"{x}"}'


def test_headers_and_bodies_on_lines_of_their_own() -> None:
    found = action(
        'post https://h.test\n  -H "A: 1"\n  -H "B: 2"\n  q: string\n'
        '  body:\n    {\n      "q": "{q}"\n    }\n'
    )
    assert found.method == "POST"
    assert found.headers == (("A", "1"), ("B", "2"))
    assert found.body == '{\n  "q": "{q}"\n}'
    assert [field.name for field in found.fields] == ["q"]


def test_a_field_may_be_called_body() -> None:
    found = action('POST https://h.test\n  body: string (required) "text"')
    assert found.body is None
    assert found.fields[0].name == "body"


def test_a_command_line_is_taken_whole() -> None:
    command = "Q={q} python3 -c \"print({'a':1})\" -H \"x\" -d '1' | tr a b && echo $(date)"
    assert action(f"CLI {command}\n  q: string").target == command


def test_a_trailing_backslash_continues_the_command() -> None:
    assert action("CLI a \\\n  b \\\n  c\n  q: string").target == "a   b   c"
    assert action('GET https://h.test \\\n  -H "A: 1"').headers == (("A", "1"),)


def test_the_query_of_a_url_is_untouched() -> None:
    assert action("GET https://h.test/s?format=%l:+%C+%t&m").target.endswith("?format=%l:+%C+%t&m")


@pytest.mark.parametrize("text", ["", "FETCH x", "GET", "https://h.test", "CLI  "])
def test_blocks_without_method_and_target_are_no_actions(text: str) -> None:
    assert parse_action("x", text) == (None, [])


def test_the_first_of_two_wins_and_templates_may_come_first() -> None:
    source = (
        "```act.a.response\nfirst\n```\n````act.a\nCLI one\n````\n```act.a\nCLI two\n```\n"
        "```act.a.response\nsecond\n```\n```act.b.response\norphan\n```\n~~~act.c\nCLI open"
    )
    document = parse(source)
    assert list(document.actions) == ["a"]
    assert document.actions["a"].target == "one"
    assert document.actions["a"].response == "first"


def test_indented_and_crlf_blocks_read_the_same() -> None:
    plain = "```act.a\nCLI x\n  q: string\n```\n```act.a.response\n{v} = {Response.body}\n```\n"
    indented = "".join(f"  {line}\n" for line in plain.splitlines())
    assert parse(indented).actions == parse(plain).actions
    assert parse(plain.replace("\n", "\r\n")).actions == parse(plain).actions


def test_ordinary_fences_are_no_actions() -> None:
    assert parse("```\n/act.x\n```\n```act\nCLI x\n```\n```act.x y\nCLI x\n```\n").actions == {}


def test_aliases_and_fields_are_found_by_name() -> None:
    found = action("GET https://h.test\n  query, -q: string")
    assert found.aliases == {"q": "query"}
    assert found.field("query") == found.fields[0]
    assert found.field("none") is None


def test_a_default_ends_where_a_description_or_a_constraint_begins() -> None:
    field = parse_field('  f: string = two  words\t"said" (required)')
    assert field == Field("f", required=True, description="said", default="two  words")


def test_lines_too_long_for_one_expression_are_not_read() -> None:
    long = "a " * LONGEST_LINE
    assert parse_action("x", f"GET /{long}") == (None, [])
    action, unread = parse_action("x", f"GET /\n  f: string = {long}\n  g: string")
    assert action is not None
    assert [field.name for field in action.fields] == ["g"]
    assert [(line, len(why) < 300) for line, why in unread] == [(1, True)]
