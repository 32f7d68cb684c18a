"""Which `$NAMES` an app gets: those set for it and its source, and the shared ones it declares."""

import json
import os
import shlex
import sys
from pathlib import Path

import pytest

from tests.requirements import proves
from tests.runtime.provenance.support import SECRET, Attempt
from tests.support.web import Reply

OWN = "sk-own-9876543210fedcba"
# A server that would be told a secret by its environment writes down what it was told.
RECORDER = "import os, sys; open(sys.argv[1], 'w').write(repr(dict(os.environ)))"


def source(attempt: Attempt, folder: str, header: str = "", name: str | None = None) -> Path:
    """An app in a folder of its own, which sends `$API_KEY` and prints it by a command."""
    path = attempt.directory / folder / "string.md"
    path.parent.mkdir(parents=True)
    path.write_text(
        f"---\nname: {name or attempt.name}\ntype: app\nhosts: ['{attempt.web.host}']\n{header}"
        f'---\n# App\n\n```act.get\nGET {attempt.web.url}/get -H "X-Key: $API_KEY"\n```\n\n'
        '```act.cli\nCLI printf "<%s>" "$API_KEY" | rev\n```\n',
        encoding="utf-8",
    )
    return path


def install(attempt: Attempt, path: Path, flags: str = "") -> str:
    """The topic of an app that the owner installed."""
    attempt.person.gets(f"/install {flags} {path}", cwd=path.parent)
    return f"app:{attempt.name}"


def sent(attempt: Attempt, topic: str) -> str | None:
    """What an app sends as its key; None when it has none."""
    before = len(attempt.web.asked)
    attempt.person.says("/act.get", topic)
    return attempt.web.last.headers.get("x-key") if len(attempt.web.asked) > before else None


@proves("PRV-12")
def test_an_app_gets_no_shared_name_that_it_does_not_declare(attempt: Attempt) -> None:
    topic = install(attempt, source(attempt, "plain"))
    assert sent(attempt, topic) is None
    refused = attempt.person.fails("/act.get", topic).text
    assert "its author adds requires: [API_KEY] to the frontmatter" in refused
    assert '/set $API_KEY = "..."' in refused
    assert SECRET not in attempt.person.gets("/act.cli", topic)
    assert attempt.person.gets("/act.cli", topic).endswith("><")
    attempt.person.gets(f'/set $API_KEY = "{OWN}"', topic)
    assert sent(attempt, topic) == OWN


@proves("PRV-12")
@pytest.mark.parametrize(
    "header", ["requires: [API_KEY]\n", 'env:\n  - API_KEY: "what for"\n'], ids=["requires", "env"]
)
def test_an_app_gets_the_shared_names_it_declares(attempt: Attempt, header: str) -> None:
    assert sent(attempt, install(attempt, source(attempt, "declares", header))) == SECRET


@proves("PRV-12")
def test_an_app_of_an_earlier_version_keeps_the_shared_names_it_had(attempt: Attempt) -> None:
    topic = install(attempt, source(attempt, "early"))
    path = attempt.person.home / "packages" / ".installed.json"
    kept = json.loads(path.read_text("utf-8"))
    del kept["packages"][attempt.name]["names"], kept["sources"]
    path.write_text(json.dumps(kept), "utf-8")
    assert sent(attempt, topic) == SECRET


@proves("PRV-12")
def test_a_package_from_elsewhere_does_not_inherit_the_names_of_its_predecessor(
    attempt: Attempt,
) -> None:
    person = attempt.person
    first, second = source(attempt, "first"), source(attempt, "second")
    topic = install(attempt, first)
    person.gets(f'/set $API_KEY = "{OWN}"', topic)
    person.gets(f"/uninstall {attempt.name}")

    refused = person.fails(f"/install {second}", cwd=second.parent)
    assert refused.code == "CONFLICT"
    assert f"they were set for another package: {first}" in refused.text
    assert f"/install --keep-names {second}" in refused.text
    assert person.fails("/act.get", topic).code == "NOT_FOUND", "nothing was installed"

    assert sent(attempt, install(attempt, first)) == OWN, "the same source has them as ever"
    person.gets(f"/uninstall {attempt.name}")
    assert sent(attempt, install(attempt, second, "--keep-names")) == OWN
    person.gets(f"/uninstall {attempt.name}")
    assert sent(attempt, install(attempt, first, "--forget-names")) is None


@proves("PRV-12")
def test_an_equal_namespace_does_not_inherit_the_names_either(attempt: Attempt) -> None:
    """A package says itself which namespace it is of."""
    person = attempt.person
    header = "namespace: acme\n"
    topic = install(attempt, source(attempt, "first", header))
    person.gets(f'/set $API_KEY = "{OWN}"', topic)
    forged = source(attempt, "forged", header)
    assert person.fails(f"/install {forged}", cwd=forged.parent).code == "CONFLICT"
    assert sent(attempt, topic) == OWN


@proves("PRV-12")
def test_names_of_a_package_an_earlier_version_installed_are_for_its_source(
    attempt: Attempt,
) -> None:
    person = attempt.person
    topic = install(attempt, source(attempt, "first"))
    person.gets(f'/set $API_KEY = "{OWN}"', topic)
    path = person.home / "packages" / ".installed.json"
    kept = json.loads(path.read_text("utf-8"))
    del kept["sources"]
    path.write_text(json.dumps(kept), "utf-8")
    person.gets(f"/uninstall {attempt.name}")
    second = source(attempt, "second")
    assert person.fails(f"/install {second}", cwd=second.parent).code == "CONFLICT"


@proves("PRV-12")
@pytest.mark.parametrize("present", [True, False], ids=["installed", "uninstalled"])
def test_a_server_mounted_under_an_apps_name_is_not_told_its_names(
    attempt: Attempt, present: bool
) -> None:
    person = attempt.person
    topic = install(attempt, source(attempt, "first"))
    person.gets(f'/set $API_KEY = "{OWN}"', topic)
    if not present:
        person.gets(f"/uninstall {attempt.name}")
    told = attempt.directory / "told"
    server = shlex.join([sys.executable, "-c", RECORDER, os.fspath(told)])
    refused = person.fails(f"/install --mcp {attempt.name} -- {server}", cwd=attempt.directory)
    assert refused.code == ("COMMAND_UNSUPPORTED" if present else "CONFLICT")
    assert not told.exists(), "it was not even started"


@proves("PRV-12")
def test_a_server_that_a_child_of_the_daemon_mounts_is_told_no_names(attempt: Attempt) -> None:
    person = attempt.person
    topic = install(attempt, source(attempt, "first"))
    person.gets(f'/set $API_KEY = "{OWN}"', topic)
    person.gets(f"/uninstall {attempt.name}")
    told = attempt.directory / "told"
    server = shlex.join([sys.executable, "-c", RECORDER, os.fspath(told)])
    asked = {
        "topic": "file:other",
        "cmd": f"/install --keep-names --mcp {attempt.name} -- {server}",
        "cwd": os.fspath(attempt.directory),
    }
    # Written to a file: quoting it for a shell that hands it to another program helps nobody.
    script = attempt.directory / "child.py"
    script.write_text(
        "import urllib.request as u\n"
        f"r = u.Request('http://127.0.0.1:{person.port}/exec', {json.dumps(asked)!r}.encode(), "
        f"{{'Content-Type': 'application/json', 'X-User-Id': {person.id!r}}})\n"
        "print(u.urlopen(r).read())\n",
        encoding="utf-8",
    )
    said = person.says(f"/exec {sys.executable} {script}")
    assert told.exists(), said
    assert OWN not in told.read_text("utf-8")


@proves("PRV-12")
def test_names_stored_for_a_linked_app_are_for_its_address(attempt: Attempt) -> None:
    person = attempt.person
    page = f"---\nname: {attempt.name}\ntype: app\n---\n# Linked\n"
    attempt.pages["/app.md"] = Reply(page, "text/markdown")
    person.gets(f"/install --link {attempt.web.url}/app.md")
    person.gets(f'/set $API_KEY = "{OWN}"', f"app:{attempt.name}")
    person.gets(f"/uninstall {attempt.name}")
    other = source(attempt, "other")
    refused = person.fails(f"/install {other}", cwd=other.parent)
    assert refused.code == "CONFLICT"
    assert f"{attempt.web.url}/app.md" in refused.text
