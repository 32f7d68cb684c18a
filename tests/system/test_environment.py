"""What a child process may see of the daemon's environment."""

import pytest

from stringd.runs.models.providers import KEY_VARIABLES
from stringd.system.environment import (
    ACTION,
    AGENT,
    MARK,
    PROVIDER_KEYS,
    SHELL,
    ChildPolicy,
    child_environment,
    may_add,
)

MARKER = "marker-3f9a"
SECRETS = {
    "STRINGD_PORT": MARKER,
    "STRINGD_ANYTHING": MARKER,
    "OPENAI_API_KEY": MARKER,
    "ANTHROPIC_API_KEY": MARKER,
    "SOMEONE_ELSES_API_KEY": MARKER,
    "ANTHROPIC_AUTH_TOKEN": MARKER,
    "HF_TOKEN": MARKER,
    "REPLICATE_API_TOKEN": MARKER,
    "AZURE_OPENAI_KEY": MARKER,
}
TOKENS = {
    "AWS_ACCESS_KEY_ID": MARKER,
    "AWS_SECRET_ACCESS_KEY": MARKER,
    "GITHUB_TOKEN": MARKER,
    "GH_TOKEN": MARKER,
    "NPM_TOKEN": MARKER,
    "DATABASE_URL": MARKER,
    "KUBECONFIG": MARKER,
    "SSH_AUTH_SOCK": MARKER,
    "GOOGLE_APPLICATION_CREDENTIALS": MARKER,
    "LC ALL": MARKER,
    "XDG_RUNTIME_DIR": MARKER,
}


def test_the_users_environment_passes_without_the_daemons_secrets() -> None:
    given = {"PATH": "/bin", "GITHUB_TOKEN": "mine", "EDITOR": "vi", **SECRETS}
    environment = child_environment(SHELL, given, home="/home/me")
    assert MARKER not in environment.values()
    assert environment["PATH"] == "/bin"
    assert environment["GITHUB_TOKEN"] == "mine"
    assert environment["HOME"] == "/home/me"


def test_nothing_in_the_environment_changes_how_the_shell_starts() -> None:
    given = {"BASH_ENV": "/x", "ENV": "/x", "PROMPT_COMMAND": "x", "SHELLOPTS": "xtrace"}
    assert not child_environment(SHELL, given, home="/").keys() & given.keys()


def test_pagers_and_questions_are_switched_off() -> None:
    environment = child_environment(SHELL, {"PAGER": "less", "TERM": "xterm"}, home="/")
    assert environment["PAGER"] == environment["GIT_PAGER"] == "cat"
    assert environment["GIT_TERMINAL_PROMPT"] == "0"
    assert environment["TERM"] == "dumb"


def test_a_language_is_set_only_when_the_user_has_none() -> None:
    assert child_environment(SHELL, {}, home="/")["LANG"] == "C.UTF-8"
    assert child_environment(SHELL, {"LANG": "de_DE.UTF-8"}, home="/")["LANG"] == "de_DE.UTF-8"


@pytest.mark.parametrize("name", ["_private", "PATH", "LD_PRELOAD", "BASH_ENV", "GIT_SSH", "a-b"])
def test_a_variable_that_would_steer_programs_is_not_exported(name: str) -> None:
    environment = child_environment(SHELL, {"PATH": "/bin"}, home="/", additions={name: MARKER})
    assert environment.get(name) != MARKER


def test_other_variables_of_the_session_are_exported() -> None:
    assert child_environment(SHELL, {}, home="/", additions={"city": "Seoul"})["city"] == "Seoul"


def test_the_mark_of_another_shell_is_not_passed_on() -> None:
    assert child_environment(SHELL, {MARK: "outer"}, home="/", mark="inner")[MARK] == "inner"


@pytest.mark.parametrize("policy", [SHELL, AGENT, ACTION])
def test_no_child_gets_settings_or_provider_keys(policy: ChildPolicy) -> None:
    names = [name for names in KEY_VARIABLES.values() for name in names if name != "GITHUB_TOKEN"]
    given = {**SECRETS, **dict.fromkeys(names, MARKER)}
    assert MARKER not in child_environment(policy, given).values()
    assert all(map(PROVIDER_KEYS.fullmatch, names))


def test_a_shell_has_the_callers_tokens_and_nothing_else_has() -> None:
    assert TOKENS.items() <= child_environment(SHELL, TOKENS).items()
    for policy in (AGENT, ACTION):
        assert MARKER not in child_environment(policy, TOKENS).values()


@pytest.mark.parametrize("policy", [SHELL, AGENT, ACTION])
def test_every_child_has_a_path_a_home_and_a_language(policy: ChildPolicy) -> None:
    found = child_environment(policy, {"PATH": ""})
    assert found["PATH"]
    assert found["HOME"]
    assert found["LANG"] == "C.UTF-8"
    given = {"PATH": "/bin", "HOME": "/h", "LC_ALL": "de_DE.UTF-8"}
    found = child_environment(policy, given)
    assert given.items() <= found.items()
    assert "LANG" not in found
    assert child_environment(policy, given, home="/other")["HOME"] == "/other"


@pytest.mark.parametrize(
    "name",
    ["PATH", "HOME", "TERM", "BASH_ENV", "IFS", "LD_LIBRARY_PATH", "PYTHONPATH", "PERL5LIB", "a b"],
)
def test_an_action_cannot_steer_programs_by_its_variables(name: str) -> None:
    assert not may_add(ACTION, name)
    assert child_environment(ACTION, {}, additions={name: MARKER}).get(name) != MARKER


@pytest.mark.parametrize("name", ["BASH_ENV", "BASHOPTS", "ENV", "PS4", "SHELLOPTS", "1x", ""])
def test_an_agent_cannot_make_a_shell_run_more_than_its_command(name: str) -> None:
    assert not may_add(AGENT, name)
    assert may_add(AGENT, "PYTHONPATH")
