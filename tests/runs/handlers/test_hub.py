"""Packages of strategies over the four hub messages."""

import http.server
import io
import json
import subprocess
import threading
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from stringd.runs.errors import PackageError
from stringd.runs.strategy import git as git_packages
from stringd.runs.strategy.package_sources import (
    GitSource,
    PathSource,
    WebSource,
    read_package_source,
)
from tests.runs.support import RunsServer, Watcher, scripted, sequential, strategy

pytestmark = pytest.mark.anyio

CODE = """
async def shout(message, config):
    return message.upper()

def register(registry):
    registry.agent("shout", shout)
"""


def files(version: str = "1.0.0", said: str = "first", **extra: Any) -> dict[str, bytes]:
    """A package whose one strategy says something."""
    manifest = {
        "name": "@me/pack",
        "version": version,
        "strategies": {"say": {"path": "say.yaml", "expose": True}},
        **extra,
    }
    source = {**strategy(sequential("a"), a=scripted(said)), "name": "Say"}
    return {
        "stringd-project.json": json.dumps(manifest).encode(),
        "say.yaml": yaml.safe_dump(source).encode(),
    }


def coded(**extra: Any) -> dict[str, bytes]:
    source = {**strategy(sequential("a"), a={"type": "shout"}), "name": "Say"}
    permissions = {"executesCode": True}
    return {
        **files(entry="entry.py", permissions=permissions, **extra),
        "entry.py": CODE.encode(),
        "say.yaml": yaml.safe_dump(source).encode(),
    }


def put(folder: Path, content: dict[str, bytes]) -> Path:
    for name, data in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def exists(path: Path | str) -> bool:
    return Path(path).exists()


def named(folder: Path, name: str) -> list[Path]:
    """Every file of this name below a folder."""
    return sorted(folder.rglob(name))


def zipped(content: dict[str, bytes], top: str = "pack-1.0/") -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for name, data in content.items():
            archive.writestr(top + name, data)
    return buffer.getvalue()


async def result(watcher: Watcher, path: str, run_id: str, **prepare: Any) -> Any:
    answer = await watcher.ask("prepare_run", runId=run_id, strategyPath=path, **prepare)
    assert answer["type"] == "run_prepared", answer
    await watcher.send("start_run", runId=run_id, input="hello")
    return (await watcher.ended())["result"]


async def test_a_folder_is_installed_listed_updated_and_removed(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    source = put(tmp_path / "source", {**files(), ".git/config": b"no", "prompts/a.md": b"Hi"})
    answer = await watcher.ask("hub_install", name=str(source))
    assert (answer["type"], answer["operation"]) == ("hub_packages", "install")
    package = answer["installedPackage"]
    assert (package["name"], package["version"]) == ("@me/pack", "1.0.0")
    assert (package["executableCodeApproved"], package["source"]) == (False, str(source))
    assert not exists(f"{package['path']}/.git")

    listed = await watcher.ask("hub_list")
    assert (listed["available"], listed["installed"]) == ([], [package])
    kept = json.loads((tmp_path / "data/hub/installed-packages.json").read_bytes())
    assert kept == {"packages": [package]}
    found = (await watcher.ask("discover_strategies"))["strategies"]
    assert ("@me/pack > Say", "hub-package") in [(e["label"], e["origin"]) for e in found]
    assert await result(watcher, "@me/pack/strategies/say", "one") == "first"

    again = await watcher.ask("hub_install", name=str(source))
    assert again["code"] == "HUB_ERROR"
    assert "Package @me/pack is already installed" in again["message"]
    put(source, files("1.1.0", "second"))
    updated = await watcher.ask("hub_update", name="@me/pack")
    assert updated["installedPackage"]["version"] == "1.1.0"
    assert updated["installedPackage"]["commit"] != package["commit"]
    assert await result(watcher, "@me/pack/strategies/say", "two") == "second"

    assert (await watcher.ask("hub_remove", name="@me/pack"))["removed"] is True
    assert not exists(package["path"])
    assert (await watcher.ask("hub_remove", name="@me/pack"))["removed"] is False
    assert (await watcher.ask("hub_list"))["installed"] == []


async def test_absent_packages_are_told_in_the_words_of_the_protocol(watcher: Watcher) -> None:
    for type_, told in (
        ("hub_install", "Hub package not found: @me/none"),
        ("hub_update", "Package @me/none is not installed"),
    ):
        answer = await watcher.ask(type_, name="@me/none")
        assert (answer["type"], answer["code"]) == ("error", "HUB_ERROR")
        assert told in answer["message"]
    assert (await watcher.ask("hub_remove", name="../../etc"))["removed"] is False


async def test_code_needs_the_owners_word_to_be_installed_and_to_run(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    source = put(tmp_path / "source", coded())
    refused = await watcher.ask("hub_install", name=str(source))
    told = "Package @me/pack contains executable code; pass allowCode: true to install it"
    assert told in refused["message"]
    assert not list((tmp_path / "data" / "packages").glob("*/*"))
    answer = await watcher.ask("hub_install", name=str(source), allowCode=True)
    assert answer["installedPackage"]["executableCodeApproved"] is True
    assert await result(watcher, "@me/pack/strategies/say", "one") == "HELLO"
    refused = await watcher.ask("hub_update", name="@me/pack")
    assert told in refused["message"]

    state = tmp_path / "data/hub/installed-packages.json"
    state.write_text(state.read_text().replace("true", "false"))
    answer = await watcher.ask("prepare_run", runId="two", strategyPath="@me/pack/strategies/say")
    assert answer["code"] == "PREPARE_FAILED"
    assert answer["message"] == (
        "Executable code is not approved for installed Hub package @me/pack"
    )


async def test_what_cannot_be_used_changes_nothing(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    source = put(tmp_path / "source", files())
    await watcher.ask("hub_install", name=str(source))
    before = await watcher.ask("hub_list")
    for content, told in (
        ({"say.yaml": b"name: ["}, "Not installed: "),
        ({"say.yaml": b"name: x"}, "Strategy validation failed"),
        (files(dependencies={"@a/b": "1"}), "packages bring everything they need"),
        (files(name="@me/other"), "is now @me/other, not @me/pack"),
        ({"stringd-project.json": b"{}"}, "Manifest validation failed"),
    ):
        put(source, {**files("2.0.0"), **content})
        answer = await watcher.ask("hub_update", name="@me/pack")
        assert answer["code"] == "HUB_ERROR"
        assert told in answer["message"]
        assert "staging" not in answer["message"]
    assert (await watcher.ask("hub_list"))["installed"] == before["installed"]
    assert await result(watcher, "@me/pack/strategies/say", "one") == "first"
    assert list((tmp_path / "data" / "hub").iterdir()) == [
        tmp_path / "data" / "hub" / "installed-packages.json"
    ]


async def test_an_archive_on_this_machine_is_a_source(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    archive = tmp_path / "pack.zip"
    archive.write_bytes(zipped(files()))
    answer = await watcher.ask("hub_install", name=str(archive))
    assert answer["installedPackage"]["commit"].startswith("sha256:")
    hostile = tmp_path / "hostile.zip"
    hostile.write_bytes(zipped({**files(name="@me/out"), "../../canary": b"x"}))
    answer = await watcher.ask("hub_install", name=str(hostile))
    assert "outside its folder" in answer["message"]
    assert not named(tmp_path, "canary")


@contextmanager
def site(answers: dict[str, bytes]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            body = answers.get(self.path)
            self.send_response(404 if body is None else 200)
            self.send_header("Content-Length", str(len(body or b"")))
            self.end_headers()
            self.wfile.write(body or b"")

        def log_message(self, *_: object) -> None:
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listening:
        thread = threading.Thread(target=listening.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.server_port}"
        finally:
            listening.shutdown()
            thread.join()


async def test_an_address_is_a_source(server: RunsServer, watcher: Watcher) -> None:
    nested = {f"packs/one/{name}": data for name, data in files().items()}
    with site({"/p.zip": zipped({**nested, "README.md": b"x"}), "/page": b"<html>"}) as url:
        top = await watcher.ask("hub_install", name=f"{url}/p.zip")
        assert "There is one in: packs/one" in top["message"]
        answer = await watcher.ask("hub_install", name=f"{url}/p.zip#packs/one")
        assert answer["installedPackage"]["source"] == f"{url}/p.zip#packs/one"
        assert (await watcher.ask("hub_update", name="@me/pack"))["operation"] == "update"
        page = await watcher.ask("hub_install", name=f"{url}/page")
        assert "not a zip, tar or tar.gz archive" in page["message"]
        gone = await watcher.ask("hub_install", name=f"{url}/gone.zip")
        assert "HTTP 404" in gone["message"]


async def test_a_git_repository_is_a_source(
    server: RunsServer, watcher: Watcher, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Whoever runs the tests may have settings of their own.
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", "/dev/null")
    repository = put(tmp_path / "repository", {f"one/{n}": d for n, d in files().items()})

    def git(*words: str, text: str = "") -> str:
        who = ("-c", "user.name=a", "-c", "user.email=a@b")
        done = subprocess.run(
            ["git", *who, *words],
            cwd=repository,
            check=True,
            capture_output=True,
            text=True,
            input=text,
        )
        return done.stdout.strip()

    git("init", "-q", "-b", "main")
    git("add", ".")
    git("commit", "-qm", "first")
    git("tag", "v1")
    put(repository, {f"one/{n}": d for n, d in files("2.0.0", "second").items()})
    git("commit", "-qam", "second")
    url = f"git+file://{repository}"
    answer = await watcher.ask("hub_install", name=f"{url}@v1#one")
    assert answer["type"] == "hub_packages", answer["message"]
    package = answer["installedPackage"]
    assert (package["version"], package["commit"]) == ("1.0.0", git("rev-parse", "v1"))
    assert package["source"] == f"{url}@v1#one"
    await watcher.ask("hub_remove", name="@me/pack")
    answer = await watcher.ask("hub_install", name=f"{url}#one")
    assert answer["installedPackage"]["version"] == "2.0.0"
    monkeypatch.setattr(git_packages, "_MAX_FILE", 4 * 1024 * 1024)
    # Folders that name the same folder ten times over: a few objects, a large archive.
    tree = git("write-tree")
    for _ in range(4):
        listed = "".join(f"040000 tree {tree}\t{name}\n" for name in "abcdefghij")
        tree = git("mktree", text=listed)
    git("update-ref", "refs/heads/large", git("commit-tree", "-m", "large", tree))
    large = await watcher.ask("hub_install", name=f"{url}@large")
    assert large["message"] == "the repository has more than 4 MiB in it"
    missing = await watcher.ask("hub_install", name=f"{url}@nowhere#one")
    assert "git clone failed: " in missing["message"]


@pytest.mark.parametrize(
    ("text", "source"),
    [
        ("gh:me/repo", GitSource("https://github.com/me/repo.git")),
        ("gh:me/repo/a/b@v1", GitSource("https://github.com/me/repo.git", "v1", "a/b")),
        (
            "https://github.com/me/repo/tree/dev/packs/one",
            GitSource("https://github.com/me/repo.git", "dev", "packs/one"),
        ),
        ("https://h/x.git@a/b#sub", GitSource("https://h/x.git", "a/b", "sub")),
        ("git+ssh://git@h/x#subdirectory=p", GitSource("ssh://git@h/x", "", "p")),
        ("git@h:me/x.git", GitSource("git@h:me/x.git")),
        ("https://h/x.tgz", WebSource("https://h/x.tgz")),
        ("/a/b", PathSource(Path("/a/b"))),
    ],
)
def test_sources_are_told_apart(text: str, source: object) -> None:
    assert read_package_source(text) == source


@pytest.mark.parametrize(
    "text",
    [
        "relative/path",
        "@scope/name",
        "--upload-pack=touch canary",
        "git+https://h/x.git@--upload-pack=x",
        "https://me:secret@h/x.git",
        "https://h/x.zip#../out",
        "ext::sh -c touch% canary",
        "git+ext::sh",
        "file:///etc",
    ],
)
def test_what_is_not_a_source_is_refused(text: str) -> None:
    with pytest.raises(PackageError):
        read_package_source(text)


async def test_a_projects_own_reference_resolves_where_its_manifest_is_loaded(
    server: RunsServer, watcher: Watcher, tmp_path: Path
) -> None:
    launcher = {
        **scripted(
            {
                "tools": [
                    {
                        "name": "launch_strategy",
                        "args": {"name": "@me/pack/strategies/say", "input": "x"},
                    }
                ]
            },
            "end",
        ),
        "tools": ["launch_strategy"],
    }
    content = files(
        strategies={"say": {"path": "say.yaml"}, "top": {"path": "top.yaml", "expose": True}}
    )
    top = yaml.safe_dump(strategy(sequential("a"), a=launcher)).encode()
    project = put(tmp_path / "project", {**content, "top.yaml": top})
    manifest = str(project / "stringd-project.json")
    path = "@me/pack/strategies/say"
    assert await result(watcher, path, "one", manifestPath=manifest) == "first"
    again = await watcher.ask("prepare_run", runId="one")
    assert again["type"] == "run_prepared"
    wrong = await watcher.ask(
        "prepare_run", runId="x", strategyPath="@me/pack/strategies/no", manifestPath=manifest
    )
    assert "There are: @me/pack/strategies/say" in wrong["message"]
    answer = await watcher.ask(
        "prepare_run",
        runId="two",
        strategyPath="@me/pack/strategies/top",
        manifestPath=manifest,
        cwd=str(project),
    )
    assert answer["type"] == "run_prepared", answer
    await watcher.send("start_run", runId="two", input="hello")
    seen = await watcher.until("strategy_completed", "strategy_error")
    told = [e["event"] for e in seen if e["type"] == "agent_streaming"]
    outputs = [e["output"] for e in told if e["type"] == "tool-result"]
    assert outputs == ['Launched "Say" → first']
