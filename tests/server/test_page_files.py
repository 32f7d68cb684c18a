"""`/ui/`: the page's files, their headers, and nothing else."""

import gzip
import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from stringd.server.page_files import FILES, POLICY
from tests.support.daemon import Daemon
from tests.support.http import Wire, message, request

VENDOR = FILES / "vendor"


def files() -> Iterator[str]:
    for path in sorted(FILES.rglob("*")):
        if path.is_file() and path.suffix in (".js", ".css", ".svg"):
            yield str(path.relative_to(FILES))


def test_a_browser_is_led_to_the_page_and_others_are_told_as_before(daemon: Daemon) -> None:
    shown = request(daemon.port, "GET", "/", headers={"Accept": "text/html,*/*"})
    other = request(daemon.port, "GET", "/")
    assert (shown.status, shown.headers["Location"], other.status) == (302, "/ui/", 404)


@pytest.mark.parametrize("path", ["/ui/", "/ui/run/abc", "/ui/topic/default/file%3Amain", "/ui/x"])
def test_every_view_is_the_same_document(daemon: Daemon, path: str) -> None:
    answer = request(daemon.port, "GET", path)
    assert (answer.status, answer.headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert b'<div id="page">' in answer.body


@pytest.mark.parametrize("path", ["/ui/", "/ui/static/js/main.js", "/ui/static/css/base.css"])
def test_nothing_foreign_runs_in_it_and_nobody_frames_it(daemon: Daemon, path: str) -> None:
    headers = request(daemon.port, "GET", path).headers
    policy = re.sub(r" 'nonce-[\w-]{20,}'", "", headers["Content-Security-Policy"])
    assert policy == POLICY
    assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert "Access-Control-Allow-Origin" not in headers
    assert "Set-Cookie" not in headers


def test_what_lets_scripts_add_styles_is_new_with_each_answer(daemon: Daemon) -> None:
    nonces = set()
    for _ in range(2):
        answer = request(daemon.port, "GET", "/ui/")
        [nonce] = re.findall(rb'name="style-nonce" content="([^"]+)"', answer.body)
        policy = answer.headers["Content-Security-Policy"]
        assert f"style-src 'self' 'nonce-{nonce.decode()}';" in policy
        assert answer.headers["Cache-Control"] == "no-store"
        nonces.add(nonce)
    assert len(nonces) == 2


@pytest.mark.parametrize("name", list(files()))
def test_every_file_is_served_whole_and_packed(daemon: Daemon, name: str) -> None:
    plain = request(daemon.port, "GET", f"/ui/static/{name}")
    packed = request(
        daemon.port, "GET", f"/ui/static/{name}", headers={"Accept-Encoding": "gzip, br"}
    )
    assert plain.body == (FILES / name).read_bytes() == gzip.decompress(packed.body)
    again = request(
        daemon.port, "GET", f"/ui/static/{name}", headers={"If-None-Match": plain.headers["ETag"]}
    )
    assert (again.status, again.body) == (304, b"")


@pytest.mark.parametrize(
    "path",
    [
        "/ui/static/",
        "/ui/static/nothing.js",
        "/ui/static/__init__.py",
        "/ui/static/../server/page_files.py",
        "/ui/static/%2e%2e/server/page_files.py",
        "/ui/static/js/..%2f..%2fserver/page_files.py",
        "/ui/static//etc/passwd",
        "/ui/static/js",
        "/ui/static/.hidden.js",
    ],
)
def test_nothing_but_the_page_is_served(daemon: Daemon, path: str) -> None:
    with Wire(daemon.port) as wire:
        assert wire.send(message("GET", path, b"", {})).receive().status == 404


def test_a_page_of_another_origin_gets_nothing(daemon: Daemon) -> None:
    foreign = {"Origin": "https://evil.example"}
    assert request(daemon.port, "GET", "/ui/static/js/main.js", headers=foreign).status == 403


def test_the_page_can_only_be_read(daemon: Daemon) -> None:
    assert request(daemon.port, "POST", "/ui/", {}).status == 405


def test_vendored_files_are_those_of_the_manifest() -> None:
    listed = json.loads((VENDOR / "manifest.json").read_text("utf-8"))
    found = {path.name for path in VENDOR.iterdir() if not path.name.endswith((".json", ".d.ts"))}
    assert {each["file"] for each in listed} == found
    for each in listed:
        digest = hashlib.sha256((VENDOR / each["file"]).read_bytes()).hexdigest()
        assert digest == each["sha256"], each["file"]
        assert each["licence"]
        assert each["version"]


def test_the_first_load_is_small() -> None:
    index = FILES / "index.html"
    named = re.findall(r'/ui/static/([^"]+)', index.read_text("utf-8"))
    loaded = {index}
    waiting = [FILES / name for name in named]
    while waiting:
        path = waiting.pop()
        if path not in loaded:
            loaded.add(path)
            waiting += imported(path)
    size = sum(len(gzip.compress(path.read_bytes())) for path in loaded)
    assert {path.name for path in loaded} >= {"main.js", "inbox.js", "purify.js", "base.css"}
    assert size <= 120_000


def imported(path: Path) -> Iterator[Path]:
    """The modules a module is loaded with; those of `import()` come when they are wanted."""
    if path.suffix == ".js":
        for name in re.findall(r"""\bfrom\s*["'](\.[^"']+)["']""", path.read_text("utf-8")):
            yield (path.parent / name).resolve()
