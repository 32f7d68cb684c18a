"""What a topic knows of the files it has read."""

from pathlib import Path

from stringd.runtime.topics.seen_files import MAX_SEEN_FILES, SeenFiles

FILE = Path("/home/u/a.md")


def test_a_file_is_known_by_what_was_seen_last() -> None:
    seen = SeenFiles()
    assert FILE not in seen
    seen.saw(FILE, b"1")
    seen.saw(FILE, b"2")
    assert (FILE in seen, seen.get(FILE)) == (True, b"2")
    seen.forget(FILE)
    assert (FILE in seen, seen.get(FILE)) == (False, None)


def test_only_what_changed_is_to_be_kept() -> None:
    seen = SeenFiles([(str(FILE), b"1"), ("/b", b"2")])
    seen.saw(FILE, b"1")
    assert dict(seen.unsaved) == {}
    seen.saw(FILE, b"3")
    seen.forget(Path("/b"))
    seen.forget(Path("/never-seen"))
    assert dict(seen.unsaved) == {str(FILE): b"3", "/b": None}
    seen.saved(dict(seen.unsaved))
    assert dict(seen.unsaved) == {}


def test_whoever_reads_many_files_forgets_the_one_not_seen_for_longest() -> None:
    seen = SeenFiles()
    for number in range(MAX_SEEN_FILES):
        seen.saw(Path(f"/{number}"), b"x")
    seen.saw(Path("/0"), b"x")
    seen.saved(dict(seen.unsaved))
    seen.saw(FILE, b"x")
    assert Path("/0") in seen
    assert Path("/1") not in seen
    assert dict(seen.unsaved) == {str(FILE): b"x", "/1": None}
