"""Response templates: what a page makes of an answer."""

import asyncio
import base64
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from stringd.actions.place import ActionContext, ListValue, Value
from stringd.actions.responses import ActionAnswer, TemplateRun
from stringd.actions.secrets import NOTHING_HIDDEN, Mask
from tests.actions.support import Files, place
from tests.requirements import proves


def run(
    template: str,
    body: Any,
    inputs: dict[str, Value] | None = None,
    at: ActionContext | None = None,
    mask: Mask = NOTHING_HIDDEN,
) -> str:
    answer = ActionAnswer({"status": 200, "body": body}, b"raw")
    return asyncio.run(TemplateRun(answer, inputs or {}, at or place(), mask).run(template))


def test_paths_reach_keys_indices_and_the_root() -> None:
    body = {"a": [{"b-c": 1}, {"x": None}], "t": True, "o": {"k": [1, "é"]}}
    assert run("{Response.body.a[0].b-c} {Response.body.a.0.b-c}", body) == "1 1"
    assert run("{Response.status} {Response.body.t}", body) == "200 true"
    assert run("<{Response.body.a[1].x}> {Response.body.o}", body) == '<> {"k":[1,"é"]}'
    assert run("{Response.body}", "just text") == "just text"
    assert run("{Response.body[1]}", ["p", "q"]) == "q"


def test_assignments_set_variables_and_print_nothing() -> None:
    at = place(variables={"name": "Ann"})
    text = run(
        "{n} = {Response.body.n}\n{m} = {Response.body.m}\n{who} = I am {name}\n", {"n": 5}, at=at
    )
    assert text == (
        "> ⚠️ Unresolved template reference: {Response.body.m}\n"
        "> This response exposes: status, body (with nested JSON reachable under body). "
        "Assigned as empty text."
    )
    assert at.names.session == {"name": "Ann", "n": "5", "m": "", "who": "I am Ann"}
    assert run("{a} == {b}", {}, {"a": "1"}) == "1 == {b}"
    assert run(" {a} = x", {}, {"a": "1"}) == " 1 = x"


def test_input_hides_a_variable_of_the_same_name() -> None:
    at = place(variables={"q": "old", "v": "var"})
    assert run("{q} {v} {nobody} {t[1]} {t}", {}, {"q": "new", "t": ("a", "b")}, at) == (
        "new var {nobody} b a,b"
    )


@proves("ACT-21")
def test_loops_repeat_nest_and_assign() -> None:
    body = {"rows": [{"n": "a", "tags": ["x", "y"]}, {"n": "b", "tags": []}]}
    template = (
        "for: r in Response.body.rows\n- {r.n}\n  for: t in r.tags\n  * {t} of {r.n}\n  end:\n"
        "{last} = {r.n}\nend:\ndone {last}"
    )
    assert run(template, body) == "- a\n  * x of a\n  * y of a\n- b\ndone b"
    assert run("for: r in rows\n{r.n}\nend:", body) == "a\nb"
    assert run("for: r in body.rows\n{r.n}\nend:", body) == "a\nb"
    assert run("for: r in Response.body\n{r}\nend:", [1, 2]) == "1\n2"
    assert run("for: r in Response.body.nothing\n{r}\nend:\nx", body) == "x"
    assert run("for: r in Response.body\n{r.missing}|", [{}]) == "|"


@proves("ACT-21")
def test_value_shortcuts_count_on_and_replace_old_ones() -> None:
    held: dict[str, Value] = {"c-7": "old", "c": "old", "city": "stays"}
    at = place(shortcuts=held)
    template = (
        "for: r in Response.body\n{@c} = ({r.a}, {r.b})\n{@c}\nend:\n"
        "for: r in Response.body\n{@c} = {r.a},{r.b}\n{@c}\nend:\n{@one} = (@{Response.body[0].a})"
    )
    text = run(template, [{"a": "1, (", "b": "2"}], at=at)
    assert text == "@c-1\n@c-2"
    assert held == {"city": "stays", "c-1": ("1, (", "2"), "c-2": "1, (,2", "one": "1, ("}


@proves("ACT-22")
def test_a_missing_reference_is_shown_and_reported() -> None:
    assert run("a {Response.body.x} b {Response.nope}", {}) == (
        "a {Response.body.x} b {Response.nope}\n\n"
        "> ⚠️ Unresolved template references: {Response.body.x}, {Response.nope}\n"
        "> This response exposes: status, body (with nested JSON reachable under body). "
        "Left visible above instead of rendering blank."
    )
    assert run("{Response.body.x}", {"x": None}) == ""


@proves("ACT-23")
def test_the_save_pipeline_writes_what_it_decoded() -> None:
    files = Files()
    at = place(files=files, context={"STRING_WORK_DIR": "/w"})
    body = {"img": base64.b64encode(b"\x89PNG").decode(), "name": "pic"}
    template = "save: img\n  decode: base64\nto: $STRING_WORK_DIR/{Response.body.name}.png\nok"
    assert run(template, body, at=at) == "ok"
    assert files == {"/w/pic.png": b"\x89PNG"}
    assert run("save: Response.body\nto: raw.bin", body, at=at) == "Saved: /here/raw.bin"
    assert files["raw.bin"] == b"raw"


@proves("ACT-23")
def test_the_save_pipeline_says_what_went_wrong() -> None:
    template = (
        "save: x.y\ndecode: base64\nto: a\nsave: t\ndecode: rot13\ndecode: base64\nsave: t\n"
        "to: /forbidden/a"
    )
    assert run(template, {"t": "!!"}).splitlines() == [
        "save: path returned no value: x.y",
        "decode: no current buffer (was save: skipped or missing?)",
        "to: no current buffer (was save: skipped or missing?)",
        'decode: unknown encoding "rot13" (supported: base64, none)',
        "decode: not base64: Only base64 data is allowed",
        "to: write failed: Path outside workspace",
    ]


def test_words_for_a_file_that_was_not_written_are_not_said() -> None:
    template = "save: t\nbefore\nto: /forbidden/a\nsaved {Response.body.t}\nto: b\nsaved b"
    said = run(template, {"t": "x"}, at=place(files=Files()))
    assert said.splitlines()[:3] == [
        "before",
        "to: write failed: Path outside workspace",
        "saved b",
    ]


def test_secrets_reach_neither_text_nor_variables_nor_shortcuts() -> None:
    held: dict[str, Value] = {}
    at = place(shortcuts=held)
    template = "{v} = {Response.body.k}\n{@s} = ({Response.body.k}, x)\nkey {Response.body.k}"
    text = run(template, {"k": "sk-secret-1"}, at=at, mask=Mask(["sk-secret-1"]))
    assert text == "key sk-…"
    assert (at.names.session, held) == ({"v": "sk-…"}, {"s": ("sk-…", "x")})


@proves("ACT-24")
@given(st.text(), st.text())
def test_data_is_never_read_as_a_template(first: str, second: str) -> None:
    body = {"a": f"{{Response.status}}{first}{{v}}", "b": f"{{@s}}{second}"}
    at = place(variables={"v": "no"})
    text = run("[{Response.body.a}]({v})[{Response.body.b}]", body, at=at)
    assert text == f"[{body['a']}](no)[{body['b']}]".rstrip()


@given(st.text(alphabet="{}@=:.[]() \nforend invRsponsebodyxsavedcoti"))
def test_any_text_is_a_template(template: str) -> None:
    run(template, {"x": [1, {"y": "z"}]}, {"x": "1"})


@proves("ACT-49")
def test_text_is_split_by_steps_of_a_path() -> None:
    rows = "id\tname\r\n1\tAda  L\n"
    assert run("for: row in Response.body.lines\n<{row.tabs[1]}>\nend:", rows) == (
        "<name>\n<Ada  L>"
    )
    assert run("{Response.body.lines.length} {Response.body.lines[1].words[2]}", rows) == "2 L"
    assert run("for: t in Response.body.tags.list\n- {t}\nend:", {"tags": "a, b"}) == "- a\n- b"
    told = '{"items": [{"n": 1}, {"n": 2}]}'
    assert run("for: i in Response.body.out.json.items\n{i.n}\nend:", {"out": told}) == "1\n2"
    assert run("{Response.body.out.json.items.length}", {"out": told}) == "2"
    assert "repeated nothing" not in run("for: i in Response.body.lines\n{i}\nend:", "")
    assert "{Response.body.json.x}" in run("{Response.body.json.x}", "not json")
    assert "Unresolved template reference" in run("{Response.body.chars}", "text")


@proves("ACT-49")
def test_inputs_are_gone_through_and_split_too() -> None:
    given: dict[str, Value] = {"tags": ListValue(("a", "b")), "csv": "x,y"}
    assert run("for: t in tags\n{t}\nend:", {}, given) == "a\nb"
    assert run("{tags.length} {tags[1]} {tags} {csv.list.length} {csv.x}", {}, given) == (
        "2 b a,b 2 {csv.x}"
    )
    assert run("for: t in csv.list\n{t}\nend:", {}, given) == "x\ny"
    assert run("for: t in tags\n{t}\nend:", {"tags": ["of the body"]}, given) == "of the body"


@proves("ACT-49")
def test_a_large_text_is_split_once_however_often_it_is_asked_for() -> None:
    run_ = TemplateRun(ActionAnswer({"body": "word " * 100_000}, b""), {}, place(), NOTHING_HIDDEN)
    template = "for: w in Response.body.words\n{Response.body.words[3]}\nend:"
    assert asyncio.run(run_.run(template)).startswith("word\nword\n")
    assert len(run_.pieces) == 1


@proves("ACT-48")
def test_a_part_that_an_input_does_not_have_is_named() -> None:
    assert run("<{t[2]}> <{s[1]}> <{s[0]}>", {}, {"t": ("a", "b"), "s": "x"}) == (
        "<> <> <x>\n\n> ⚠️ {t[2]} is empty: the value has 2 parts.\n\n"
        "> ⚠️ {s[1]} is empty: the value has 1 part."
    )
