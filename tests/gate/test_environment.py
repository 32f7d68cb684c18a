import os
import pwd

import pytest

from stringd.gate.environment import plain_environment
from stringd.gate.resolve import CHILD_PATH
from stringd.gate.sudo import sudo_words
from tests.gate.test_validate import valid, validated
from tests.requirements import proves

OWN = {"SECRET_KEY": "hunter2", "PATH": "/evil", "SSH_AUTH_SOCK": "/agent", "LANG": "C"}


@proves("GATE-ENV-02")
def test_a_plain_child_gets_what_the_request_set_and_our_account_and_nothing_else() -> None:
    account = pwd.getpwuid(os.getuid())
    env = plain_environment(validated(valid(env={"TZ": "UTC"})), OWN)
    assert env == {
        "TZ": "UTC",
        "HOME": account.pw_dir,
        "USER": account.pw_name,
        "LOGNAME": account.pw_name,
        "PATH": CHILD_PATH,
    }


def test_an_account_without_a_name_still_has_an_environment(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("stringd.gate.environment.os.getuid", lambda: 3_999_999_999)
    env = plain_environment(validated(valid()), OWN)
    assert (env["USER"], env["HOME"]) == ("3999999999", "/")


def test_a_requested_home_wins() -> None:
    assert plain_environment(validated(valid(env={"HOME": "/x"})), OWN)["HOME"] == "/x"


def test_the_agent_is_ours_and_only_on_request() -> None:
    request = validated(valid(forward_agent=True))
    assert plain_environment(request, OWN)["SSH_AUTH_SOCK"] == "/agent"
    assert "SSH_AUTH_SOCK" not in plain_environment(request, {})


@proves("GATE-EXE-07")
def test_sudo_gets_only_what_the_request_set_and_then_two_dashes() -> None:
    request = validated(valid(env={"TZ": "UTC"}, privileged=True))
    assert sudo_words("sudo", request.env, ["/bin/id", "-u"]) == [
        "sudo",
        "TZ=UTC",
        "--",
        "/bin/id",
        "-u",
    ]
