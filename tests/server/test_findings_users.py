"""What new users ran into, by the number of the finding."""

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path

import pytest

from stringd.client import String
from tests.support.commands import environment, run
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person
from tests.support.web import Reply, WebServer

_numbers = count(1)


@pytest.fixture(scope="module")
def newcomers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Daemon]:
    """Shell commands have a second."""
    directory = tmp_path_factory.mktemp("newcomers")
    with Daemon(directory, STRINGD_BASH_TIMEOUT_MS="1000", STRINGD_BASH_QUIET_MS="500") as running:
        yield running


@pytest.fixture
def person(newcomers: Daemon, tmp_path: Path) -> Person:
    return Person(newcomers.port, f"newcomer-{next(_numbers)}", tmp_path / "home")


def test_2_the_end_of_a_command_names_the_remedy(person: Person) -> None:
    said = person.fails("while :; do echo line; sleep 0.1; done", "bash:b")
    assert said.code == "EXIT_124"
    assert "Give it more time with //timeout 20m <command>" in said.text


def test_2_a_topic_or_one_command_has_a_longer_limit(person: Person) -> None:
    slow = "for i in 1 2 3 4 5 6 7; do echo $i; sleep 0.2; done"
    assert "\n7" in person.gets(f"//timeout 1m {slow}", "bash:b")
    assert "\n7" in person.gets(f"//timeout 1m\n{slow}", "bash:b")
    assert person.gets("//timeout", "bash:b") == "timeout: 1s"
    assert person.gets("//timeout 1h30m", "bash:b") == "timeout: 1h30m for commands of this topic."
    assert "\n7" in person.gets(slow, "bash:b")
    assert person.gets("//timeout", "bash:b") == "timeout: 1h30m"
    assert "Write a time as 90s" in person.fails("//timeout soon", "bash:b").text


def test_2_a_running_command_is_given_more_time(person: Person) -> None:
    assert "It is ended in" in person.gets("//timeout 1m sleep 1000", "bash:b")
    assert person.gets("//timeout 20m", "bash:b").endswith("the one that runs too, from now on.")
    left = person.gets("//wait 0.1", "bash:b").partition("It is ended in ")[2].partition(" s ")[0]
    assert 1000 < int(left) <= 1200
    person.gets("//close", "bash:b")


@pytest.fixture
def developer(daemon: Daemon, tmp_path: Path) -> dict[str, str]:
    """The environment of somebody with a virtual environment, a git identity and secrets."""
    (tmp_path / "real/.local/bin").mkdir(parents=True)
    (tmp_path / "real/.gitconfig").write_text("[user]\n\tname = Ada\n\temail = ada@h.test\n")
    env = environment(daemon, STRINGD_USER=f"dev-{next(_numbers)}", STRINGD_HOME=f"{tmp_path}/s")
    return {
        **env,
        "HOME": f"{tmp_path}/real",
        "PATH": f"{tmp_path}/real/.local/bin:{env['PATH']}",
        "VIRTUAL_ENV": f"{tmp_path}/venv",
        "OPENAI_API_KEY": "secret-key",
        "GITHUB_TOKEN": "secret-token",
    }


def test_3_a_commit_works_in_a_fresh_shell(developer: dict[str, str], tmp_path: Path) -> None:
    project = tmp_path / "project"
    project.mkdir()
    commit = "git init -q . && echo text > a && git add a && git commit -qm first && git log -1"
    done = run("string", "bash:b", commit, env=developer, cwd=project)
    assert done.code == 0, done
    assert "Author: Ada <ada@h.test>" in done.out


@pytest.mark.parametrize(("topic", "cmd"), [("bash:b", ""), ("file:main", "/exec ")])
def test_3_a_shell_has_the_callers_environment_without_secrets(
    developer: dict[str, str], tmp_path: Path, topic: str, cmd: str
) -> None:
    seen = run("string", topic, f"{cmd}env", env=developer, cwd=tmp_path).out
    assert f"HOME={tmp_path}/real\n" in seen
    assert f"VIRTUAL_ENV={tmp_path}/venv\n" in seen
    assert f"PATH={tmp_path}/real/.local/bin:" in seen
    assert "secret-key" not in seen
    assert "secret-token" not in seen


def test_3_python_and_chanflow_clients_vouch_too(
    daemon: Daemon, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/venv/of/python")
    monkeypatch.setenv("GITHUB_TOKEN", "secret-token")
    with String(f"dev-{next(_numbers)}", home=tmp_path, port=daemon.port) as client:
        assert "/venv/of/python" in client.exec("bash:b", "echo $VIRTUAL_ENV$GITHUB_TOKEN").content
        asked = "<𝒞=string:bash:c>echo $VIRTUAL_ENV$GITHUB_TOKEN</𝒞>"
        assert "/venv/of/python" in client.chanflow(asked)
        assert "secret-token" not in client.chanflow(asked)


def test_3_who_vouches_for_nothing_has_the_string_home(daemon: Daemon, tmp_path: Path) -> None:
    person = Person(daemon.port, f"dev-{next(_numbers)}", tmp_path / "home")
    assert person.gets("echo $HOME", "bash:b").endswith(f"\n{person.home}")
    answer = person.post(cmd="echo", topic="bash:b", env={"PATH": 1})
    assert (answer.status, answer.json) == (400, {"error": "env must be an object of strings"})


def test_3_nobody_brings_secrets_or_loaders_into_a_shell(daemon: Daemon, tmp_path: Path) -> None:
    person = Person(daemon.port, f"dev-{next(_numbers)}", tmp_path / "home")
    said = {"LD_PRELOAD": "/x.so", "BASH_ENV": "/x", "AWS_SECRET_ACCESS_KEY": "k", "EDITOR": "ed"}
    body = {"cmd": "echo [$LD_PRELOAD$BASH_ENV$AWS_SECRET_ACCESS_KEY$EDITOR]", "topic": "bash:b"}
    answer = request(daemon.port, "POST", "/exec", {**body, "env": said}, {"X-User-Id": person.id})
    assert "[ed]" in answer.events[1][1]


def test_5_a_file_of_a_project_opens_as_typed(person: Person, tmp_path: Path) -> None:
    project = tmp_path / "project"
    (project / "docs").mkdir(parents=True)
    (project / "README.md").write_text("# Project\n\n## Use\n\ntext\n")
    (project / "docs/guide.md").write_text("# Guide\n")
    assert "# Project" in person.gets("/open README.md", cwd=project)
    assert "# Guide" in person.gets("/open docs/guide.md", cwd=project)
    assert "# Project" in person.gets("/open README.md", cwd=project)
    assert "text" in person.gets("/open README.md#use", "file:other", project)
    assert person.gets("/replace README.md:L5\nnew", "file:third", project) == (
        "Replaced README.md:L5"
    )
    assert (project / "README.md").read_text().endswith("new\n")


PAGE = "---\ntitle: T\n---\n# Top\n\n## First goals\n\nalpha\n\n## Second\n\nbeta Alpha\n"


def test_7_an_outline_has_lines_and_ids(person: Person) -> None:
    person.put("p.md", PAGE)
    expected = (
        "Outline of p.md\n---\nL4    Top  #top\nL6      First goals  #first-goals\n"
        "L10     Second  #second"
    )
    assert person.gets("/outline p.md") == expected
    person.gets("/open p.md")
    assert person.gets("/outline") == expected
    person.put("empty.md", "text")
    assert person.gets("/outline empty.md").endswith("(no headings and no blocks)")
    assert person.fails("/outline no.md").code == "NOT_FOUND"


def test_7_a_text_is_found_in_a_document_a_folder_and_apps(person: Person) -> None:
    person.put("p.md", PAGE)
    person.put("sub/q.md", "one\nALPHA\n")
    person.put("sub/.hidden/r.md", "alpha")
    person.put("sub/binary", b"alpha\0")
    (person.home / "sub/out").symlink_to("/etc")
    person.gets("/open p.md")
    assert person.gets("/find alpha") == (
        "Found 2 lines with “alpha” in p.md\n---\np.md:L8: alpha\np.md:L12: beta Alpha"
    )
    assert person.gets("/find alpha --in sub").endswith("\n---\nsub/q.md:L2: ALPHA")
    assert "p.md:L8: alpha" in person.gets("/find alpha", "file:fresh")
    assert "(nothing found)" in person.gets("/find omega --in sub/q.md")
    assert "To search sub: /find omega --in sub" in person.gets("/find omega sub")
    person.put("src-a/string.md", "---\ntype: app\nname: a\n---\n# A\n\nAlpha inside\n")
    person.gets("/install ~/src-a", "file:apps")
    assert "packages/a/string.md:L7: Alpha inside" in person.gets("/find alpha --apps")
    assert "app:a  A" in person.gets("/find a --apps")
    assert person.fails("/find").text.startswith("ERROR(INVALID_TARGET): Usage: /find")
    assert person.fails("/find x --in /etc").code == "FILE_NOT_ALLOWED"


def test_7_an_action_of_the_page_comes_before_our_own_command(person: Person) -> None:
    person.put("a.md", "```act.find\nCLI echo found {q}\n  q: string\n```\n")
    person.gets("/open a.md")
    assert person.gets("/find it") == "found it"


def test_7_a_near_miss_is_named(person: Person) -> None:
    person.put("p.md", PAGE)
    assert person.fails("/open p.md#first-gaols").message == (
        "Block not found: #first-gaols in p.md\nDid you mean #first-goals?\n"
        "Available blocks: top, first-goals, second"
    )
    assert "Did you mean #second?" in person.fails("/edit p.md#secnod").message


def test_18_a_loop_over_text_says_what_was_wrong(person: Person) -> None:
    with WebServer(Reply('{"items": "text"}')) as web:
        person.put(
            "p.md",
            f"```act.get\nGET {web.url}/\n```\n"
            "```act.get.response\nAll:\nfor: x in Response.body.items\n{x}\nend:\n```\n",
        )
        person.gets("/open p.md")
        assert person.gets("/act.get") == (
            "All:\n\n> ⚠️ for: … in Response.body.items repeated nothing: it is text, not a list."
            " Response.body.items.lines goes through its lines."
        )


def test_18_a_tuple_with_one_value_says_what_is_missing(person: Person) -> None:
    person.put(
        "p.md",
        "```act.get\nCLI echo {item[0]}/{item[1]}\n  item: tuple (required)\n```\n",
    )
    person.gets("/open p.md")
    assert person.fails("/act.get tea").message.startswith("--item takes 2 values together; got 1")
    assert person.gets('/act.get ["tea", "7"]') == "tea/7"


def test_21_fields_have_items_and_text_is_split(person: Person) -> None:
    person.put(
        "p.md",
        "```act.sort\nCLI printf '%s\\n' {names} | sort\n  names: lines (required)\n```\n"
        "```act.sort.response\n{Response.stdout.lines.length} of {names.length}\n"
        "for: line in Response.stdout.lines\n- {line.words[0]}\nend:\n```\n",
    )
    person.gets("/open p.md")
    assert person.gets('/act.sort "b x\na y\n"') == "2 of 2\n- a\n- b"


def test_an_app_listed_outside_the_reach_of_files_is_not_read(
    person: Person, tmp_path: Path
) -> None:
    outside = tmp_path / "string.md"
    outside.write_text("---\ntype: app\ndescription: Hidden treasure\n---\n# X\n", "utf-8")
    person.put("config.json", json.dumps({"apps": {"far": outside.as_uri()}}))
    assert "treasure" not in person.gets("/find far --apps").partition("---")[2]
    assert "app:far" in person.gets("/find far --apps")
