"""Where `to:` writes, and where it never does."""

from pathlib import Path

import pytest

from tests.requirements import proves
from tests.runtime.provenance.support import Attempt
from tests.support.daemon import Daemon
from tests.support.web import Reply

SAVES = """
```act.save
GET {url}/save
  file: string (required)
```

```act.save.response
save: Response.body
to: {{file}}
saved
```
"""


def own_page(attempt: Attempt) -> str:
    attempt.person.put("saves.md", SAVES.format(url=attempt.web.url))
    attempt.person.gets("/open saves.md")
    return "file:main"


def app(attempt: Attempt) -> str:
    head = f"---\nname: {attempt.name}\ntype: app\nhosts: ['{attempt.web.host}']\n---\n# App\n"
    path = attempt.file(attempt.directory / "src", head + SAVES.format(url=attempt.web.url))
    attempt.person.gets(f"/install {path}", cwd=path.parent)
    return f"app:{attempt.name}"


@proves("PRV-13")
@pytest.mark.parametrize("page", [own_page, app])
@pytest.mark.parametrize(
    "place",
    [
        "~/packages/other/string.md",
        "~/packages/.installed.json",
        "~/apps/other/env.json",
        "~/apps/other/notes.txt",
        "~/tools/evil.md",
        "~/config.json",
        "~/.string-work/other/data.txt",
        "{cwd}/.git/hooks/pre-commit",
        "{cwd}/sub/.GIT/config",
        "{cwd}/bare/hooks/post-receive",
        "{cwd}/bare/config",
        "{cwd}/.hg/hgrc",
        "{cwd}/.stringd/mcp.json",
        "{cwd}/.comma/strategies/x.yaml",
        "{cwd}/link/hooks/x",
    ],
)
def test_files_that_decide_what_runs_are_not_written(
    attempt: Attempt, page: object, place: str
) -> None:
    topic = own_page(attempt) if page is own_page else app(attempt)
    cwd = attempt.directory
    (cwd / ".git").mkdir()
    for part in ("HEAD", "objects", "refs", "hooks"):
        (cwd / "bare" / part).mkdir(parents=True)
    (cwd / "link").symlink_to(cwd / ".git")
    path = place.format(cwd=cwd)
    real = Path(path.replace("~", str(attempt.person.home)))
    before = real.read_bytes() if real.exists() else None
    said = attempt.person.gets(f"/act.save '{path}'", topic, cwd)
    assert "to: write failed: " in said
    assert (real.read_bytes() if real.exists() else None) == before


@proves("PRV-13")
def test_an_app_writes_its_data_and_what_its_caller_named(attempt: Attempt) -> None:
    topic, cwd = app(attempt), attempt.directory
    work = attempt.person.home / ".string-work" / attempt.name
    for path, real in [
        ("out.json", cwd / "out.json"),
        ("~/deep/out.json", attempt.person.home / "deep" / "out.json"),
        (str(work / "kept.json"), work / "kept.json"),
    ]:
        said = attempt.person.gets(f"/act.save {path}", topic, cwd)
        assert said in ("saved", f"saved\n\nSaved: {real}")
        assert real.read_text(encoding="utf-8") == '{"ok": true}'
    assert attempt.person.gets("/act.save here.json", topic).startswith("saved")
    assert (work / "here.json").exists()


@proves("PRV-13")
def test_the_daemons_own_directory_is_not_written(attempt: Attempt, daemon: Daemon) -> None:
    own_page(attempt)
    cwd = daemon.directory
    for path in (daemon.data_dir / "users.json", cwd / ".string" / "trust.json"):
        before = path.read_bytes() if path.exists() else None
        assert "to: write failed: " in attempt.person.gets(f"/act.save {path}", cwd=cwd)
        assert (path.read_bytes() if path.exists() else None) == before


FETCHED = "# Fetched\n```act.run\nCLI touch {canary}\n```\n```act.home\nGET {url}/?h=$HOME\n```\n"


def test_an_answer_that_was_saved_in_the_home_is_not_a_page_of_the_user(
    attempt: Attempt, tmp_path: Path
) -> None:
    person, web = attempt.person, attempt.web
    canary = tmp_path / "canary"
    text = FETCHED.format(canary=canary, url=web.url)
    web.answer = Reply(text, "text/plain")
    topic = own_page(attempt)
    assert "saved" in person.gets("/act.save clips/page.md", topic)
    saved = person.home / "clips" / "page.md"
    assert saved.read_text() == text
    assert "Fetched" in person.gets("/open ~/clips/page.md")
    refused = person.fails("/act.run")
    assert "holds an answer that an action saved" in refused.text
    assert f"stringd trust {saved}" in refused.text
    assert person.fails("/act.home").code == "INVALID_PAYLOAD"
    assert person.fails("/write ~/packages/.saved.json\n{}").code == "FILE_NOT_ALLOWED"
    assert not canary.exists()
    saved.write_text(f"{text}\nMine by now.\n")
    person.gets("/refresh")
    person.gets("/act.run")
    assert canary.exists()


def test_what_a_command_printed_stays_the_users_when_it_is_saved(
    attempt: Attempt, tmp_path: Path
) -> None:
    person, canary = attempt.person, tmp_path / "canary"
    (tmp_path / "made.md").write_text(FETCHED.format(canary=canary, url=attempt.web.url))
    page = f"```act.make\nCLI cat {tmp_path}/made.md\n```\n"
    person.put(
        "makes.md", page + "```act.make.response\nsave: Response.stdout\nto: ~/made.md\n```\n"
    )
    person.gets("/open ~/makes.md")
    person.gets("/act.make")
    person.gets("/open ~/made.md")
    person.gets("/act.run")
    assert canary.exists()
