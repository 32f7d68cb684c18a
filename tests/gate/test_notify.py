import threading
from pathlib import Path

import pytest

from stringd.gate import notify
from stringd.gate.notify import Hook, sentence
from tests.gate.support import PATIENCE, no_more_threads
from tests.gate.test_execute import processes_with
from tests.gate.test_turns import until


@pytest.mark.parametrize(
    ("session", "name"),
    [
        ("alpha", "alpha"),
        ("", "an unnamed session"),
        ("<b>x</b> & $(id)", "?b?x??b? ? ??id?"),
        ("x" * 100, "x" * 40),
    ],
)
def test_a_notification_names_the_session_in_plain_letters(session: str, name: str) -> None:
    assert sentence(session) == f"A question from {name} is waiting for you."


def test_a_hook_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(notify, "HOOK_SECONDS", 0.2)
    hook, marker = tmp_path / "hook", str(tmp_path / "marker")
    hook.write_text(f"#!/bin/sh\nsleep {PATIENCE * 2} &\nwait\n")
    hook.chmod(0o755)
    Hook(f"{hook} {marker}").fire("alpha")
    until(lambda: all(thread.name != "notify" for thread in threading.enumerate()))
    assert processes_with(marker) == []


def test_a_hook_is_found_from_where_the_gate_was_started(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    hook = tmp_path / "hook"
    hook.write_text('#!/bin/sh\ntouch "$1"\n')
    hook.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    waiting = Hook(f"./hook {tmp_path}/ran")
    monkeypatch.chdir("/")
    waiting.fire("alpha")
    until((tmp_path / "ran").exists)


@pytest.mark.parametrize("command", ["nosuch-notifier", "/etc/passwd"])
def test_a_hook_that_cannot_run_changes_nothing(command: str) -> None:
    Hook(command).fire("alpha")


def test_a_hook_without_a_thread_to_wait_for_it_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(threading.Thread, "start", no_more_threads)
    Hook("true").fire("alpha")
