"""What a child process may see of the daemon's environment."""

import pytest

from stringd.system.environment import MARK, child_environment

MARKER = "marker-3f9a"
SECRETS = {
    "STRINGD_PORT": MARKER,
    "STRINGD_ANYTHING": MARKER,
    "OPENAI_API_KEY": MARKER,
    "ANTHROPIC_API_KEY": MARKER,
    "SOMEONE_ELSES_API_KEY": MARKER,
    "ANTHROPIC_AUTH_TOKEN": MARKER,
}


def test_the_users_environment_passes_without_the_daemons_secrets() -> None:
    given = {"PATH": "/bin", "GITHUB_TOKEN": "mine", "EDITOR": "vi", **SECRETS}
    environment = child_environment(given, home="/home/me")
    assert MARKER not in environment.values()
    assert environment["PATH"] == "/bin"
    assert environment["GITHUB_TOKEN"] == "mine"
    assert environment["HOME"] == "/home/me"


def test_nothing_in_the_environment_changes_how_the_shell_starts() -> None:
    given = {"BASH_ENV": "/x", "ENV": "/x", "PROMPT_COMMAND": "x", "SHELLOPTS": "xtrace"}
    assert not child_environment(given, home="/").keys() & given.keys()


def test_pagers_and_questions_are_switched_off() -> None:
    environment = child_environment({"PAGER": "less", "TERM": "xterm"}, home="/")
    assert environment["PAGER"] == environment["GIT_PAGER"] == "cat"
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["TERM"] == "dumb"


def test_a_language_is_set_only_when_the_user_has_none() -> None:
    assert child_environment({}, home="/")["LANG"] == "C.UTF-8"
    assert child_environment({"LANG": "de_DE.UTF-8"}, home="/")["LANG"] == "de_DE.UTF-8"


@pytest.mark.parametrize("name", ["_private", "PATH", "LD_PRELOAD", "BASH_ENV", "GIT_SSH", "a-b"])
def test_a_variable_that_would_steer_programs_is_not_exported(name: str) -> None:
    environment = child_environment({"PATH": "/bin"}, home="/", variables={name: MARKER})
    assert environment.get(name) != MARKER


def test_other_variables_of_the_session_are_exported() -> None:
    assert child_environment({}, home="/", variables={"city": "Seoul"})["city"] == "Seoul"


def test_the_mark_of_another_shell_is_not_passed_on() -> None:
    assert child_environment({MARK: "outer"}, home="/", mark="inner")[MARK] == "inner"
