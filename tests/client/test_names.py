import subprocess
import sys

import pytest

import stringd.client
from tests.support.daemon import WAIT_SECONDS


def test_every_public_name_loads() -> None:
    assert sorted(stringd.client.__all__) == stringd.client.__all__
    for name in stringd.client.__all__:
        assert getattr(stringd.client, name).__name__ == name


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="nothing"):
        _ = stringd.client.nothing


def test_importing_the_package_loads_none_of_its_modules() -> None:
    code = "import sys, stringd.client; print(*[n for n in sys.modules if 'stringd' in n])"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert "stringd.client" in done.stdout.split()
    assert not any(name.startswith("stringd.client.") for name in done.stdout.split())


def test_the_string_clients_need_nothing_but_the_standard_library() -> None:
    code = (
        "import sys; before = set(sys.modules)\n"
        "from stringd.client import AsyncString, String\n"
        "print(*[m.__file__ for n, m in list(sys.modules.items())"
        " if n not in before and getattr(m, '__file__', None)])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        timeout=WAIT_SECONDS,
        check=True,
    )
    assert "site-packages" not in done.stdout
