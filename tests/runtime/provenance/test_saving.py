"""Where `to:` writes, and where it never does."""

from pathlib import Path

import pytest

from tests.requirements import proves
from tests.runtime.provenance.support import Attempt
from tests.support.daemon import Daemon

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
        assert attempt.person.gets(f"/act.save {path}", topic, cwd) == "saved"
        assert real.read_text(encoding="utf-8") == '{"ok": true}'
    assert attempt.person.gets("/act.save here.json", topic) == "saved"
    assert (work / "here.json").exists()


@proves("PRV-13")
def test_the_daemons_own_directory_is_not_written(attempt: Attempt, daemon: Daemon) -> None:
    own_page(attempt)
    cwd = daemon.directory
    for path in (daemon.data_dir / "users.json", cwd / ".string" / "trust.json"):
        before = path.read_bytes() if path.exists() else None
        assert "to: write failed: " in attempt.person.gets(f"/act.save {path}", cwd=cwd)
        assert (path.read_bytes() if path.exists() else None) == before
