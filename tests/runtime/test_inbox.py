"""Events that wait for a user: kept over a restart, bounded, and gone with the user."""

from pathlib import Path

import pytest

from stringd.runtime.inbox import MAX_EVENTS, Inbox, InboxFullError, WebhookOwner

ANN = WebhookOwner("ann", "file:main")


def test_events_and_tokens_outlive_the_daemon(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    token = inbox.token("ann", "file:main")
    kept = [inbox.add(ANN, f"{number}") for number in range(3)]
    inbox.acknowledge("ann", kept[0].id)

    again = Inbox(tmp_path)
    assert again.owner(token) == ANN
    assert [(each.text, each.status) for each in again.events("ann")] == [
        ("0", "ack"),
        ("1", "pending"),
        ("2", "pending"),
    ]
    private = [path for path in tmp_path.rglob("*") if path.stat().st_mode & 0o077]
    assert private == []


def test_a_full_inbox_drops_what_was_dealt_with_and_nothing_else(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    events = [inbox.add(ANN, "x") for _ in range(MAX_EVENTS)]
    with pytest.raises(InboxFullError):
        inbox.add(ANN, "one too many")
    inbox.acknowledge("ann", events[7].id)
    inbox.add(ANN, "fits")
    left = {each.id for each in Inbox(tmp_path).events("ann")}
    assert events[7].id not in left
    assert len(left) == MAX_EVENTS


def test_nothing_is_left_of_a_user_who_is_gone(tmp_path: Path) -> None:
    inbox = Inbox(tmp_path)
    token, other = inbox.token("../ann", "file:a"), inbox.token("bob", "file:a")
    inbox.add(WebhookOwner("../ann", "file:a"), "x")
    inbox.forget("../ann")
    assert Inbox(tmp_path).events("../ann") == []
    assert inbox.owner(token) is None
    assert inbox.owner(other) == WebhookOwner("bob", "file:a")
