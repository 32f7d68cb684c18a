"""`/install` and `/uninstall` through a real daemon."""

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from tests.requirements import proves
from tests.runtime.commands.conftest import Caller, StartDaemon
from tests.support.web import Asked, Reply, WebServer

APP = (
    "---\nname: {name}\ntype: app\n---\n# {name}\n\n"
    "```act.run\nCLI ./helper {{x}}\n  x: string\n```\n"
)


@pytest.fixture(scope="module")
def github() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon, github: WebServer) -> Caller:
    return start_daemon(STRINGD_GITHUB_API=github.url, GITHUB_TOKEN="gh-token-1")


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture
def name() -> str:
    return f"app{uuid4().hex[:8]}"


def folder(call: Caller, name: str, text: str | None = None) -> Path:
    """An app in a folder of its own."""
    root = call.home / f"src-{name}"
    root.mkdir()
    (root / "string.md").write_text(text or APP.format(name=name), encoding="utf-8")
    helper = root / "helper"
    helper.write_text('#!/bin/sh\nprintf "<%s>" "$1"\n', encoding="utf-8")
    helper.chmod(0o755)
    (root / ".hidden").write_text("x", encoding="utf-8")
    (root / "link").symlink_to("/etc/passwd")
    (root / "deep").mkdir()
    (root / "deep" / "page.md").write_text("# Deep\n", encoding="utf-8")
    return root


def config(call: Caller) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads((call.home / "config.json").read_text("utf-8"))
    return found


@proves("ACT-34")
def test_a_folder_is_installed_opened_used_and_removed(call: Caller, name: str) -> None:
    root = folder(call, name)
    package = call.home / "packages" / name
    assert call("file:main", f"/install ./{root.name}").content == (
        f"Installed app:{name}\n  Source: ./{root.name}\n  Path: {package}/string.md\n"
        f"Use: /open app:{name}"
    )
    assert {path.name for path in package.rglob("*") if not path.name.startswith(".")} == {
        "string.md",
        "helper",
        "deep",
        "page.md",
    }
    assert os.access(package / "helper", os.X_OK)
    assert config(call)["apps"][name] == (package / "string.md").as_uri()
    assert (call.home / "config.json").stat().st_mode & 0o777 == 0o600
    assert call("file:main", f"/open app:{name}").ok
    assert call(f"app:{name}:one", "/act.run 'a b'").content == "<a b>"
    assert call("file:other", f"/open {name}").ok
    gone = call("file:main", f"/uninstall {name}")
    assert gone.content.startswith(f"Uninstalled app:{name}\n  Closed 3 active sessions: ")
    assert not package.exists()
    assert name not in config(call).get("apps", {})
    assert call("file:main", f"/uninstall {name}").content == (
        f"ERROR(NOT_FOUND): Package not found: {name}"
    )


@proves("ACT-35")
def test_the_same_source_may_be_installed_again_another_may_not(call: Caller, name: str) -> None:
    root = folder(call, name)
    assert call("file:main", f"/install {root}").ok
    (root / "string.md").write_text(APP.format(name=name) + "\nnew\n", encoding="utf-8")
    (root / "helper").unlink()
    assert call("file:main", f"/install {root}").ok
    package = call.home / "packages" / name
    assert "new" in (package / "string.md").read_text(encoding="utf-8")
    assert not (package / "helper").exists()
    other = call.home / f"other-{name}"
    other.mkdir()
    (other / "string.md").write_text(APP.format(name=name), encoding="utf-8")
    refused = call("file:main", f"/install {other}")
    assert refused.code == "COMMAND_UNSUPPORTED"
    assert f'An app named "{name}" is already installed.' in refused.content
    assert f"--as {name}-2" in refused.content
    assert f"/uninstall {name}" in refused.content
    assert call("file:main", f"/install {other} --as {name}-2").ok
    assert {path.name for path in (call.home / "packages").iterdir() if name in path.name} == {
        name,
        f"{name}-2",
    }


@proves("ACT-35")
def test_one_namespace_and_name_is_one_package(call: Caller, name: str) -> None:
    text = APP.format(name=name).replace("type: app", "type: app\nnamespace: me")
    for suffix in ("a", "b"):
        root = call.home / f"{name}-{suffix}"
        root.mkdir()
        (root / "string.md").write_text(f"{text}\n{suffix}\n", encoding="utf-8")
        assert call("file:main", f"/install {root}").ok
    package = call.home / "packages" / name / "string.md"
    assert package.read_text(encoding="utf-8").endswith("b\n")


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/install", "No source specified and no document is open."),
        ("/install x.md --as", "--as requires a value: --as <local-name>"),
        ("/install --link ./x.md", "--link requires an http(s) URL source."),
        ("/install untyped.md", 'Cannot determine package type for "untyped".'),
        ("/install untyped.md --app --as '!!'", 'Invalid package name: "!!"'),
        ("/install missing.md", "File not found: missing.md"),
    ],
)
def test_refusals_say_what_is_missing(call: Caller, command: str, expected: str) -> None:
    (call.home / "untyped.md").write_text("# Untyped\n", encoding="utf-8")
    reply = call(f"file:{uuid4().hex}", command)
    assert reply.code == "COMMAND_UNSUPPORTED"
    assert reply.content.startswith(f"ERROR(COMMAND_UNSUPPORTED): {expected}")


def test_switches_do_not_swallow_the_source(call: Caller, name: str) -> None:
    root = folder(call, name, "# Untyped\n")
    assert call("file:main", f"/install --tool {root} --as {name}").content.endswith(
        f"Use: /tool:{name}"
    )


def test_the_open_document_is_a_source(call: Caller, name: str) -> None:
    root = folder(call, name)
    topic = f"file:{uuid4().hex}"
    call(topic, f"/open {root}/string.md")
    assert call(topic, "/install").content.startswith(f"Installed app:{name}\n  Source: src-{name}")


def test_state_of_a_home_is_not_copied_into_an_app_that_lies_in_it(call: Caller, name: str) -> None:
    call("file:main", '/set $API_KEY = "sk-12345678"')
    (call.home / f"{name}.md").write_text(APP.format(name=name), encoding="utf-8")
    assert call("file:main", f"/install {name}.md").ok
    package = call.home / "packages" / name
    assert not any("sk-12345678" in path.read_text("utf-8") for path in package.glob("*.json"))
    assert not (package / "packages").exists()
    call("file:main", f"/uninstall {name}")


@proves("ACT-36")
def test_a_url_is_copied_or_linked(call: Caller, web: WebServer, name: str) -> None:
    web.answer = Reply(APP.format(name=name), "text/markdown")
    copied = call("file:main", f"/install {web.url}/x.md")
    assert f"Path: {call.home}/packages/{name}/string.md" in copied.content
    linked = call("file:main", f"/install --link {web.url}/x.md --as {name}-far")
    assert linked.content == (
        f"Linked app:{name}-far (URL shortcut)\n  Source: {web.url}/x.md\n"
        f"  Path: {web.url}/x.md\nUse: /open app:{name}-far"
    )
    assert call(f"app:{name}-far", "/act.run").code == "FILE_NOT_ALLOWED"


@proves("ACT-36")
def test_a_manifest_is_installed_whole(call: Caller, web: WebServer, name: str) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.target == "/app":
            files = [
                {"path": "string.md", "content": APP.format(name=name)},
                {"path": "helper", "url": "/files/helper"},
            ]
            return Reply(json.dumps({"files": files}))
        return Reply("#!/bin/sh\necho ran\n", "text/plain")

    web.answer = answer
    assert call("file:main", f"/install {web.url}/app").ok
    assert web.asked[0].headers["accept"] == "application/json, text/markdown, text/plain"
    assert call(f"app:{name}", "/act.run x").content == "ran"


@proves("ACT-37")
@pytest.mark.parametrize("path", ["../evil", "/etc/evil", "a/../../evil", "\\evil"])
def test_a_manifest_may_not_write_elsewhere(call: Caller, web: WebServer, path: str) -> None:
    files = [{"path": "string.md", "content": "x"}, {"path": path, "url": "/never"}]
    web.answer = Reply(json.dumps({"files": files}))
    refused = call("file:main", f"/install {web.url}/app")
    assert refused.content == (
        f'ERROR(COMMAND_UNSUPPORTED): Security violation: invalid file path "{path}"'
    )
    assert len(web.asked) == 1


def test_a_manifest_needs_its_main_file(call: Caller, web: WebServer) -> None:
    web.answer = Reply('{"files":[{"path":"a.md","content":""}]}')
    refused = call("file:main", f"/install {web.url}/app")
    assert refused.content.startswith(
        f'ERROR(LOAD_ERROR): Manifest at {web.url}/app is missing a "string.md" entry in files[]. '
    )


def test_installations_at_once_leave_each_package_whole(call: Caller) -> None:
    names = [f"many{number}" for number in range(3)]
    for name in names:
        root = folder(call, name)
        for number in range(40):
            (root / f"page{number}.md").write_text("# Page\n", encoding="utf-8")
    orders = [f"/install src-{name}" for name in names for _ in range(5)]
    orders += [f'/set $MANY{number} = "{number}"' for number in range(10)]
    with ThreadPoolExecutor(len(orders)) as pool:
        replies = pool.map(call, [f"file:at-once-{n}" for n in range(len(orders))], orders)
    assert [reply.content for reply in replies if not reply.ok] == []
    held = config(call)
    assert {*names} <= held["apps"].keys()
    assert {f"MANY{number}" for number in range(10)} <= held["env"].keys()
    for name in names:
        assert len(list((call.home / "packages" / name).glob("page*.md"))) == 40
        assert call(f"app:{name}", "/act.run x").content == "<x>"


def test_help_installs_and_removes_nothing(call: Caller, name: str) -> None:
    root = folder(call, name)
    call(f"file:{name}", f"/open {root}/string.md")
    assert call(f"file:{name}", "/install --help").content.startswith("Usage: /install <source>")
    assert call(f"file:{name}", "/uninstall --help").content == "Usage: /uninstall <name>"
    assert call(f"app:{name}", "/act").code == "NOT_FOUND"


def test_a_mistyped_flag_is_named(call: Caller, name: str) -> None:
    refused = call("file:main", f"/install --toll src-{name}")
    assert refused.content.startswith("ERROR(COMMAND_UNSUPPORTED): Unknown flag: toll\nUsage: ")


def test_a_manifest_without_a_name_is_called_as_its_file(call: Caller, web: WebServer) -> None:
    web.answer = Reply('{"files":[{"path":"string.md","content":"# Clock"}]}')
    installed = call("file:main", f"/install --app {web.url}/apps/clock.json")
    assert installed.content.startswith("Installed app:clock\n")
    call("file:main", "/uninstall clock")


def test_a_manifest_must_say_where_a_file_comes_from(call: Caller, web: WebServer) -> None:
    web.answer = Reply('{"files":[{"path":"string.md","content":"# x"},{"path":"lost.md"}]}')
    assert call("file:main", f"/install --app {web.url}/app").content == (
        f'ERROR(COMMAND_UNSUPPORTED): "lost.md" of the manifest at {web.url}/app '
        "has no url and no content."
    )
    assert len(web.asked) == 1


@proves("ACT-36")
def test_a_github_directory_is_installed(call: Caller, github: WebServer, name: str) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.target.startswith("/repos/me/repo/contents/apps/x?ref=v1"):
            assert asked.headers["authorization"] == "Bearer gh-token-1"
            entries = [
                {"name": file, "type": "file", "download_url": f"{github.url}/raw/{file}"}
                for file in ("string.md", "helper")
            ]
            return Reply(json.dumps([*entries, {"name": "sub", "type": "dir"}]))
        assert "authorization" not in asked.headers
        if asked.target == "/raw/string.md":
            return Reply(APP.format(name=name), "text/plain")
        return Reply("#!/bin/sh\necho from github\n", "text/plain")

    github.answer = answer
    for source in ("gh:me/repo/apps/x@v1", "https://github.com/me/repo/tree/v1/apps/x"):
        installed = call("file:main", f"/install {source}")
        assert installed.ok, installed.content
        assert call(f"app:{name}", "/act.run x").content == "from github"
        call("file:main", f"/uninstall {name}")


def test_github_failures_say_what_to_do(call: Caller, github: WebServer) -> None:
    github.answer = Reply("{}", status=403)
    assert "Set GITHUB_TOKEN" in call("file:main", "/install gh:me/repo").content
    github.answer = Reply('[{"name":"README.md","type":"file"}]')
    assert call("file:main", "/install gh:me/repo").content == (
        "ERROR(COMMAND_UNSUPPORTED): No string.md in me/repo. Found: README.md"
    )
