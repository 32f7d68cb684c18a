"""`GET /topics/<user>/<topic>` of the real daemon: a look that changes nothing."""

from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import Daemon
from tests.support.http import Blocked, User, request

PAGE = """---
title: Release runbook
---
[!nav:main](menu.md)

# Release

Ask the [front desk](https://example.com/desk) or read [the steps](#steps).

## Steps {#steps}

1. Deploy.

```act.deploy
CLI printf '%s' "{version}"
  version: string (required) "What goes out"
  env: staging|production = "staging"
  dry_run: boolean = "true"
  count: number (min:1, max:9)
```
"""


def view(user: User, topic: str = "file:main") -> Any:
    answer = request(user.port, "GET", f"/topics/{user.id}/{topic}")
    assert answer.status == 200, answer
    return answer.json


def write_page(user: User) -> None:
    (user.home / "release.md").write_text(PAGE, "utf-8")
    (user.home / "menu.md").write_text("- [@desk The desk](desk.md)\n", "utf-8")
    (user.home / "desk.md").write_text("# Desk\n", "utf-8")


def test_the_open_document_is_told_with_everything_that_can_be_done_in_it(user: User) -> None:
    write_page(user)
    user.exec("/open desk.md")
    user.exec("/open release.md")
    user.exec('/set {version} = "1.9.2"')
    seen = view(user)
    document = seen["document"]
    assert (document["title"], document["shown"]) == ("Release runbook", "release.md")
    assert "[front desk][@front-desk]" in document["markdown"]
    assert "[nav]" not in document["markdown"]
    assert "act.deploy" not in document["markdown"]
    assert [(each["id"], each["level"]) for each in document["outline"]] == [
        ("release", 1),
        ("steps", 2),
    ]
    (menu,) = document["menus"]
    assert [(each["id"], each["label"]) for each in menu["entries"]] == [("main.desk", "The desk")]
    (action,) = document["actions"]
    fields = {each["name"]: each for each in action["fields"]}
    assert (action["id"], action["method"]) == ("deploy", "CLI")
    assert fields["version"]["required"]
    assert fields["version"]["description"] == "What goes out"
    assert fields["env"]["choices"] == ["staging", "production"]
    assert fields["env"]["default"] == "staging"
    assert (fields["count"]["minimum"], fields["count"]["maximum"]) == (1, 9)
    assert [each["shown"] for each in seen["history"]] == ["desk.md"]
    assert seen["variables"] == [{"name": "{version}", "value": "1.9.2", "masked": False}]
    assert {"form": "/back", "what": "Return to the previous page"} in seen["commands"]
    assert seen["shell"] is None


def test_a_block_is_told_as_its_reader_sees_it(user: User) -> None:
    write_page(user)
    user.exec("/open release.md#steps")
    document = view(user)["document"]
    assert document["block"] == "steps"
    assert "Deploy." in document["markdown"]
    assert "front desk" not in document["markdown"]


def test_looking_changes_nothing(user: User) -> None:
    write_page(user)
    user.exec("/open release.md")
    before = user.exec("/info")
    first = view(user)
    (user.home / "release.md").write_text("# Changed\n", "utf-8")
    assert view(user) == first
    assert user.exec("/info") == before


def test_secrets_are_masked_as_set_masks_them(user: User) -> None:
    user.exec('/set $DEPLOY_TOKEN = "dpl-secret-value"')
    user.exec('/set $CITY = "Busan"')
    listed = user.exec("/set")[1]
    told = {each["name"]: each for each in view(user)["variables"]}
    assert told["$DEPLOY_TOKEN"] == {"name": "$DEPLOY_TOKEN", "value": "dpl…", "masked": True}
    assert told["$CITY"]["value"] == "Busan"
    assert all(f'{each["name"]} = "{each["value"]}"' in listed for each in told.values())


def test_a_busy_topic_is_looked_at_without_waiting(user: User) -> None:
    with Blocked(user) as blocked:
        seen = view(user)
        assert [each["command"] for each in seen["running"]] == [f"/exec cat {blocked.pipe}"]
        assert seen["executing"]


def test_a_document_is_read_again_after_a_restart(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "someone", tmp_path / "someone")
        write_page(user)
        user.exec("/open release.md")
        before = view(user)["document"]
        daemon.stop()
        daemon.start()
        after = view(user)["document"]
        (user.home / "release.md").unlink()
        gone = view(user)["document"]
    assert after == before
    assert (gone["markdown"], gone["shown"]) == ("", "release.md")
    assert "release.md" in gone["problem"]


def test_a_look_makes_no_missing_source_file(tmp_path: Path) -> None:
    with Daemon(tmp_path) as daemon:
        user = User(daemon.port, "someone", tmp_path / "someone")
        sources = user.home / "doc.source"
        sources.mkdir()
        (user.home / "doc.md").write_text("# Doc\n\n[!include:part]()\n", "utf-8")
        user.exec("/open doc.md")
        (made,) = sources.iterdir()
        made.unlink()
        daemon.stop()
        daemon.start()
        view(user)
        assert not made.exists()


def test_a_name_that_is_not_utf_8_is_shown_with_a_mark(user: User) -> None:
    name = b"caf\xe9.md".decode("utf-8", "surrogateescape")
    try:
        (user.home / name).write_text("# Caf\n", "utf-8")
    except OSError:
        pytest.skip("the file system takes only UTF-8 names")
    user.exec("/open caf%E9.md")
    assert view(user)["topic"] == "file:main"


@pytest.mark.parametrize(
    "path",
    [
        "/topics/",
        "/topics/nobody/file:main",
        "/topics/{user}/file:other",
        "/topics/{user}/",
        "/topics/{user}",
        "/topics/{user}/nonsense:x",
        "/topics/{user}/file:main/more",
        "/topics/{user}/%00",
        "/topics/..%2f..%2fetc/passwd",
    ],
)
def test_what_is_not_a_topic_is_not_found_and_not_made(user: User, path: str) -> None:
    user.exec("/info")
    answer = request(user.port, "GET", path.format(user=user.id))
    assert answer.status == 404
    assert list(user.sessions()) == ["file:main"]


def test_names_are_percent_decoded(user: User) -> None:
    user.exec("/info")
    assert view(user, "file%3Amain")["topic"] == "file:main"


@pytest.mark.parametrize("origin", ["https://evil.example", "null"])
@pytest.mark.parametrize("topic", ["file:main", "bash:dev/output"])
def test_a_page_of_another_origin_gets_nothing(user: User, origin: str, topic: str) -> None:
    user.exec("/info")
    answer = request(user.port, "GET", f"/topics/{user.id}/{topic}", headers={"Origin": origin})
    assert answer.status == 403
    assert list(user.sessions()) == ["file:main"]


def test_a_topic_cannot_be_changed_there(user: User) -> None:
    user.exec("/info")
    assert request(user.port, "POST", f"/topics/{user.id}/file:main", {}).status == 404
