"""The owner's word is kept by path and content, and nobody else's counts."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stringd.system.trust import (
    TrustError,
    TrustStore,
    digest_of,
    digest_of_files,
    real_path,
)


@pytest.fixture
def store(tmp_path: Path) -> TrustStore:
    return TrustStore(tmp_path / "own" / "trust.json")


def test_nothing_is_trusted_at_first(store: TrustStore, tmp_path: Path) -> None:
    assert store.state(tmp_path, digest_of(b"")) == "unknown"
    assert store.entries() == []


def test_a_file_is_trusted_with_exactly_this_content(store: TrustStore, tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    store.trust(page, digest_of(b"one"))
    assert store.is_trusted(page, b"one")
    assert not store.is_trusted(page, b"two")
    assert store.state(page, digest_of(b"two")) == "changed"
    assert not store.is_trusted(tmp_path / "other.md", b"one")


def test_another_process_sees_it_and_the_file_is_private(store: TrustStore, tmp_path: Path) -> None:
    store.trust(tmp_path, "sha256:1")
    assert TrustStore(store.file).state(tmp_path, "sha256:1") == "trusted"
    assert store.file.stat().st_mode & 0o777 == 0o600
    assert store.file.parent.stat().st_mode & 0o777 == 0o700


def test_a_link_counts_as_what_it_leads_to(store: TrustStore, tmp_path: Path) -> None:
    page, link = tmp_path / "page.md", tmp_path / "link.md"
    page.write_bytes(b"one")
    link.symlink_to(page)
    store.trust(link, digest_of(b"one"))
    assert store.is_trusted(page, b"one")
    assert [each.path for each in store.entries()] == [real_path(page)]


def test_removed_is_removed_even_when_the_path_is_gone(store: TrustStore, tmp_path: Path) -> None:
    store.trust(tmp_path / "gone", "sha256:1")
    assert store.remove(tmp_path / "gone")
    assert not store.remove(tmp_path / "gone")
    assert store.entries() == []


def test_a_change_by_another_process_counts_at_once(store: TrustStore, tmp_path: Path) -> None:
    store.trust(tmp_path, "sha256:1")
    other = TrustStore(store.file)
    assert other.state(tmp_path, "sha256:1") == "trusted"
    store.remove(tmp_path)
    assert other.state(tmp_path, "sha256:1") == "unknown"


@pytest.mark.parametrize("mode", [0o620, 0o602, 0o666])
def test_a_file_others_can_write_trusts_nothing(
    store: TrustStore, tmp_path: Path, mode: int
) -> None:
    store.trust(tmp_path, "sha256:1")
    store.file.chmod(mode)
    assert store.state(tmp_path, "sha256:1") == "unknown"
    with pytest.raises(TrustError, match="chmod 600"):
        store.entries()


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"trusted": [{}]}', '{"trusted": [{"path": 1, "digest": 2}]}', "["]
)
def test_a_damaged_file_trusts_nothing_and_is_not_overwritten(
    store: TrustStore, tmp_path: Path, text: str
) -> None:
    store.trust(tmp_path, "sha256:1")
    store.file.write_text(text)
    assert store.state(tmp_path, "sha256:1") == "unknown"
    with pytest.raises(TrustError, match="damaged"):
        store.trust(tmp_path, "sha256:2")
    assert store.file.read_text() == text


@pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("/dev/zero")])
def test_a_trust_file_that_is_not_a_file_trusts_nothing(
    store: TrustStore, tmp_path: Path, make: Callable[[Path], None]
) -> None:
    store.file.parent.mkdir()
    make(store.file)
    assert store.state(tmp_path, "sha256:1") == "unknown"
    with pytest.raises(TrustError):
        store.entries()


def test_the_digest_of_several_files_depends_on_names_and_contents_not_on_order() -> None:
    one, two = ("a", digest_of(b"1")), ("b", digest_of(b"2"))
    assert digest_of_files([one, two]) == digest_of_files([two, one])
    others = [[one], [("a", two[1]), ("b", one[1])], [("ab", one[1]), two], []]
    assert digest_of_files([one, two]) not in [digest_of_files(each) for each in others]


_CHILD = """
import sys
from pathlib import Path
from stringd.system.lineage import mark_descendants
from stringd.system.trust import NotTheOwnerError, TrustStore
mark_descendants()
store = TrustStore(Path(sys.argv[1]))
for change in (lambda: store.trust("/", "sha256:2"), lambda: store.remove(sys.argv[2])):
    try:
        change()
    except NotTheOwnerError:
        print("refused")
"""


def test_what_a_daemon_started_changes_nothing(store: TrustStore, tmp_path: Path) -> None:
    store.trust(tmp_path, "sha256:1")
    before = json.loads(store.file.read_text())
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(store.file), str(tmp_path)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["refused", "refused"]
    assert json.loads(store.file.read_text()) == before
