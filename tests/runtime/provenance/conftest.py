"""A page that tries everything, and a server that records what reaches it."""

from pathlib import Path

import pytest

from tests.runtime.provenance.support import SECRET, Attempt
from tests.support.person import Person
from tests.support.web import WebServer


@pytest.fixture
def attempt(person: Person, tmp_path: Path, web: WebServer) -> Attempt:
    person.home.mkdir(exist_ok=True)
    person.gets(f'/set $API_KEY = "{SECRET}"', "file:setup")
    return Attempt(person, tmp_path / "clone", web)
