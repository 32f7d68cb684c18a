"""Templates are text with holes: they run nothing and read nothing unless the owner allows it."""

from pathlib import Path

import pytest

from stringd.runs.agents.templates import Templates
from stringd.runs.errors import ExecutionError

HERE = Path(__file__).parent


def test_variables_conditions_and_loops_are_rendered_without_escaping() -> None:
    text = "{{ a }}{% if b %}!{% endif %}{% for x in l %}{{ x }},{% endfor %}{{ none }}"
    values = {"a": "<i>", "b": True, "l": ["1", "2"]}
    assert Templates().render(text, values, HERE) == "<i>!1,2,"


def test_a_variable_may_have_any_name() -> None:
    assert Templates().render("{{ self }}{{ args }}", {"self": "a", "args": "b"}, HERE) == "ab"


@pytest.mark.parametrize("name", ["env", "file", "exec"])
def test_guarded_filters_are_refused_and_the_way_on_is_told(name: str) -> None:
    with pytest.raises(ExecutionError, match=f"STRINGD_TEMPLATE_FILTERS={name}"):
        Templates().render(f"{{{{ 'HOME' | {name} }}}}", {}, HERE)


@pytest.mark.parametrize(
    "text", ["{% include '/etc/passwd' %}", "{% render 'x' %}", "{{ 1 | nope }}", "{% if %}"]
)
def test_templates_reach_no_other_file_and_mistakes_are_told(text: str) -> None:
    with pytest.raises(ExecutionError, match="Template failed"):
        Templates().render(text, {}, HERE)


def test_a_template_that_never_ends_is_stopped() -> None:
    with pytest.raises(ExecutionError, match="Template failed"):
        Templates().render("{% for i in (1..1000000000) %}x{% endfor %}", {}, HERE)


def test_allowed_filters_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLOUR", "blue")
    (tmp_path / "f.txt").write_text(" first \nsecond\n", "utf-8")
    templates = Templates(frozenset({"env", "file", "exec"}))
    text = "{{ 'COLOUR' | env }} {{ 'f.txt' | file }} {{ 'echo hi' | exec }}"
    assert templates.render(text, {}, tmp_path) == "blue first hi"
    for wrong in ("{{ 'NO_SUCH' | env }}", "{{ 'no' | file }}", "{{ 'true' | exec }}"):
        with pytest.raises(ExecutionError):
            templates.render(wrong, {}, tmp_path)


def test_a_command_of_a_template_sees_no_keys_and_does_no_harm(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    templates = Templates(frozenset({"exec"}))
    said = templates.render("{{ 'env; echo end' | exec }}", {}, HERE)
    assert said.endswith("end")
    assert "sk-secret" not in said
    with pytest.raises(ExecutionError, match="denied by deny-commands: rm -rf / deletes"):
        templates.render("{{ 'true && rm -rf /' | exec }}", {}, HERE)
