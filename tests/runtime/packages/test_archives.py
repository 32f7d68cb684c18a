"""Archives of apps: what is small stays small."""

import io
import tarfile

import pytest

from stringd.runtime.packages.archives import MAX_MEMBERS, unpack
from stringd.runtime.packages.install import InstallError


def test_a_file_with_holes_does_not_become_as_large_as_it_says() -> None:
    packed = io.BytesIO()
    holes = {"GNU.sparse.map": "0,1", "GNU.sparse.size": str(128 * 1024 * 1024)}
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name, headers in (("string.md", {}), ("large", holes)):
            info = tarfile.TarInfo(name)
            info.size, info.pax_headers = 1, headers
            archive.addfile(info, io.BytesIO(b"#"))
    assert unpack(packed.getvalue(), "it") == {"string.md": b"#"}


def test_a_list_of_too_many_files_is_not_read() -> None:
    with pytest.raises(InstallError, match=f"more than {MAX_MEMBERS} files"):
        unpack(b"PK\x03\x04" + b"PK\x01\x02" * (4 * MAX_MEMBERS + 1), "it")
