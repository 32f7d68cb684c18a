"""Archives: what comes out, and what never does."""

import gzip
import io
import stat
import tarfile
import zipfile
from collections.abc import Callable

import pytest

from stringd.formats.archives import ArchiveError, ArchiveLimits, is_archive, unpack


def zipped(files: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
        for name, target in (links or {}).items():
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (stat.S_IFLNK | 0o777) << 16
            archive.writestr(entry, target)
    return buffer.getvalue()


def tarred(files: dict[str, bytes], *, links: dict[str, str] | None = None) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w:gz") as archive:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
        for name, target in (links or {}).items():
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname = tarfile.SYMTYPE, target
            archive.addfile(entry)
    return buffer.getvalue()


Maker = Callable[[dict[str, bytes]], bytes]
MAKERS = pytest.mark.parametrize("made", [zipped, tarred], ids=["zip", "tgz"])


@MAKERS
def test_files_come_out_without_the_folder_around_them(made: Maker) -> None:
    archive = made({"top/a.txt": b"a", "top/deep/b.txt": b"b"})
    assert unpack(archive) == {"a.txt": b"a", "deep/b.txt": b"b"}
    flat = made({"a.txt": b"a", "x/b.txt": b"b"})
    assert unpack(flat) == {"a.txt": b"a", "x/b.txt": b"b"}


@MAKERS
@pytest.mark.parametrize(
    "name", ["../out.txt", "/etc/out", "a/../../out", "..\\out.txt", "a/..", "\\out"]
)
def test_no_name_leads_out_of_the_folder(made: Maker, name: str) -> None:
    with pytest.raises(ArchiveError, match="outside its folder"):
        unpack(made({"a.txt": b"", name: b"canary"}))


@pytest.mark.parametrize("made", [zipped, tarred], ids=["zip", "tgz"])
def test_links_are_left_out(made: Callable[..., bytes]) -> None:
    assert unpack(made({"a": b"1", "c": b"2"}, links={"b": "/etc/passwd"})) == {
        "a": b"1",
        "c": b"2",
    }


@MAKERS
def test_a_bomb_is_refused_before_it_is_unpacked(made: Maker) -> None:
    bomb = made({"zeros": bytes(4 * 1024 * 1024)})
    assert len(bomb) < 64 * 1024
    with pytest.raises(ArchiveError, match="more than 1 MiB"):
        unpack(bomb, ArchiveLimits(size=1024 * 1024))


@MAKERS
def test_too_many_files_are_refused(made: Maker) -> None:
    many = made({f"{number}": b"" for number in range(11)})
    with pytest.raises(ArchiveError, match="more than 10 files"):
        unpack(many, ArchiveLimits(files=10))
    assert len(unpack(many, ArchiveLimits(files=11))) == 11


def test_a_header_longer_than_the_bound_is_refused() -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        entry = tarfile.TarInfo("a")
        entry.pax_headers = {"comment": "x" * (4 * 1024 * 1024)}
        archive.addfile(entry)
    with pytest.raises(ArchiveError, match="more than it may"):
        unpack(gzip.compress(buffer.getvalue()), ArchiveLimits(files=10, size=1024 * 1024))


@pytest.mark.parametrize(
    "data",
    [
        b"PK\x03\x04 and then nothing of the kind",
        gzip.compress(b"not a tar" * 200),
        tarred({"a": b"x" * 5000})[:-40],
        zipped({"a": b"x" * 5000})[:-40],
    ],
    ids=["not a zip", "not a tar", "cut tgz", "cut zip"],
)
def test_a_damaged_archive_is_refused(data: bytes) -> None:
    assert is_archive(data)
    with pytest.raises(ArchiveError):
        unpack(data)


def test_other_files_are_not_archives() -> None:
    assert not is_archive(b"name: hello")
    with pytest.raises(ArchiveError, match="not a zip, tar or"):
        unpack(b"name: hello")
