"""`/update` and `/apps`: packages from archives, addresses and folders, kept current."""

import gzip
import io
import json
import tarfile
import zipfile
from collections.abc import Callable, Mapping

import pytest

from tests.requirements import proves
from tests.support.person import Person
from tests.support.web import Asked, Reply, WebServer

APP = """---
name: tally
type: app
version: {version}
description: Counts words.
{more}---
# Tally

{text}

```act.hello
{action}
```
"""
HELLO = "CLI printf hello"


def app(version: str = "1.0", more: str = "", text: str = "", action: str = HELLO) -> str:
    return APP.format(version=version, more=more, text=text, action=action)


def zipped(files: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    return packed.getvalue()


def tarred(files: Mapping[str, str]) -> bytes:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for name, text in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
    return packed.getvalue()


def installed(person: Person) -> set[str]:
    root = person.home / "packages" / "tally"
    paths = (path for path in root.rglob("*") if path.is_file() and path.name[0] != ".")
    return {str(path.relative_to(root)) for path in paths}


@proves("ACT-43")
@pytest.mark.parametrize("pack", [zipped, tarred])
@pytest.mark.parametrize("folder", ["", "tally-1.0/"])
def test_an_archive_is_installed_whole(
    person: Person, pack: Callable[[Mapping[str, str]], bytes], folder: str
) -> None:
    helper = "#!/bin/sh\nprintf 'from the archive'\n"
    files = {
        f"{folder}string.md": app(action="CLI ./bin/helper"),
        f"{folder}bin/helper": helper,
        f"{folder}pages/more.md": "# More\n",
        f"{folder}.hidden": "x",
    }
    person.put("tally-1.0.zip", pack(files))
    assert person.gets("/install ./tally-1.0.zip").startswith("Installed app:tally\n")
    assert installed(person) == {"string.md", "bin/helper", "pages/more.md"}
    assert person.gets("/act.hello", "app:tally") == "from the archive"


@proves("ACT-43")
def test_an_archive_comes_from_an_address_too(person: Person, web: WebServer) -> None:
    web.answer = Reply(tarred({"./string.md": app(), "./more.md": "# More\n"}), "application/gzip")
    assert person.gets(f"/install {web.url}/dist/tally.tgz").startswith("Installed app:tally\n")
    assert installed(person) == {"string.md", "more.md"}


LARGE = 70 * 1024 * 1024
BROKEN: dict[str, tuple[Callable[[], bytes], str]] = {
    "above": (lambda: zipped({"../string.md": "x", "string.md": "x"}), "invalid file path"),
    "absolute": (lambda: tarred({"/string.md": "x"}), "invalid file path"),
    "other": (
        lambda: zipped({"a.md": "x", "b.md": "y"}),
        "No string.md at the top of ./x.zip. Found: a.md",
    ),
    "cut zip": (lambda: zipped({"string.md": "x"})[:-30], "Cannot unpack ./x.zip"),
    "cut tar": (lambda: tarred({"string.md": "x"})[:40], "Cannot unpack ./x.zip"),
    "not a tar": (lambda: gzip.compress(b"not a tar" * 200), "Cannot unpack ./x.zip"),
    "large zip": (lambda: zipped({"string.md": " " * LARGE}), "unpacks to more than 64 MiB"),
    "large tar": (lambda: tarred({"string.md": " " * LARGE}), "unpacks to more than 64 MiB"),
}


@proves("ACT-43")
@pytest.mark.parametrize("broken", BROKEN)
def test_an_archive_that_is_not_an_app_is_refused(person: Person, broken: str) -> None:
    content, said = BROKEN[broken]
    person.put("x.zip", content())
    refused = person.fails("/install ./x.zip --app")
    assert said in refused.text
    assert not list((person.home / "packages").glob("*"))


@proves("ACT-43")
def test_links_and_devices_of_an_archive_are_left_out(person: Person) -> None:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        main = app().encode()
        info = tarfile.TarInfo("string.md")
        info.size = len(main)
        archive.addfile(info, io.BytesIO(main))
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE):
            link = tarfile.TarInfo(f"special{kind.decode()}.md")
            link.type, link.linkname = kind, "/etc/hostname"
            archive.addfile(link)
    person.put("tally.tgz", packed.getvalue())
    person.gets("/install ./tally.tgz")
    assert installed(person) == {"string.md"}


@proves("ACT-44")
def test_the_pages_of_an_app_come_along_from_its_address(person: Person, web: WebServer) -> None:
    pages = {
        "/apps/tally.md": app(
            text="[guide](./docs/guide.md) [gone](gone.md) [out](../other.md) "
            "[far](https://example.invalid/x.md) [data](data.csv)\n\n[!nav:top](menu.md)",
            more="requires: [TALLY_KEY]\n",
        ),
        "/apps/docs/guide.md": "# Guide\n\n[on](next.md#part) [back](../tally.md)\n",
        "/apps/docs/next.md": "# Next\n\n[guide](guide.md)\n",
        "/apps/menu.md": "[@guide Guide](docs/guide.md)\n",
        "/apps/requirements.md": "# Get a key\n",
        "/other.md": "# Not below the app\n",
    }

    def answer(asked: Asked) -> Reply:
        page = pages.get(asked.target)
        return Reply("", status=404) if page is None else Reply(page, "text/markdown")

    web.answer = answer
    said = person.gets(f"/install {web.url}/apps/tally.md")
    assert said.endswith("Linked pages that could not be fetched: gone.md")
    assert installed(person) == {
        *("string.md", "tally.md", "menu.md", "requirements.md"),
        *("docs/guide.md", "docs/next.md"),
    }
    asked = [each.target for each in web.asked]
    assert sorted(asked) == sorted({*asked})
    assert not {"/other.md", "/apps/data.csv"} & {*asked}
    person.gets("/open app:tally")
    assert "# Guide" in person.gets("/open ./docs/guide.md")


@proves("ACT-44")
def test_an_app_of_too_many_pages_is_refused(person: Person, web: WebServer) -> None:
    def answer(asked: Asked) -> Reply:
        number = int("".join(filter(str.isdigit, asked.target)) or 0)
        links = " ".join(f"[p](p{n}.md)" for n in range(number * 20, number * 20 + 20))
        return Reply(app(text=links), "text/markdown")

    web.answer = answer
    refused = person.fails(f"/install {web.url}/string.md")
    assert "are more than 200 or 32 MiB" in refused.text
    assert len(web.asked) < 50


@proves("ACT-45")
def test_an_update_says_what_changed_and_keeps_what_was_made(person: Person) -> None:
    person.put("src/string.md", app())
    person.put("src/helper", "#!/bin/sh\necho 1\n")
    person.gets("/install ./src")
    person.gets('/set $TALLY_KEY = "abc"', "app:tally")
    person.gets("/open", "app:tally")
    (person.home / "packages/tally/made.txt").write_text("made", "utf-8")
    assert person.gets("/update tally") == "app:tally (1.0) is up to date."
    new = "CLI printf changed\n```\n\n```act.bye\nCLI printf bye"
    person.put("src/string.md", app("1.1", action=new))
    person.put("src/more.md", "# More\n")
    (person.home / "src/helper").unlink()
    assert person.gets("/update --check") == (
        "Updates\n---\napp:tally (1.0 → 1.1) would change:\n  Changed: string.md\n"
        "  Added: more.md\n  Removed: helper\n  Actions: ~hello, +bye\nUse: /update tally"
    )
    assert person.gets("/act.hello", "app:tally") == "hello"
    said = person.gets("/update app:tally")
    assert said.startswith(
        f"Updated app:tally (1.0 → 1.1)\n  Source: {person.home}/src/string.md\n"
    )
    assert said.endswith("Carried over: 1 file that its actions made")
    assert person.gets("/act.hello", "app:tally") == "changed"
    assert "$TALLY_KEY" in person.gets("/set", "app:tally")
    assert installed(person) == {"string.md", "more.md", "made.txt"}


@proves("ACT-46")
@pytest.mark.parametrize(
    ("before", "after", "asked"),
    [
        (
            app(action="GET https://a.example/x"),
            app("2", action="GET https://b.example/x"),
            "hosts it did not reach: b.example",
        ),
        (
            app(more="hosts: [a.example]\n"),
            app("2", more="hosts: [a.example, '*.c.example']\n"),
            "hosts it did not reach: *.c.example",
        ),
        (app(), app("2", more="requires: [OPENAI_KEY]\n"), "did not get: $OPENAI_KEY"),
        (app(action="GET https://a.example/x"), app("2"), "commands, which it did not run"),
    ],
)
def test_a_version_that_asks_for_more_waits_for_a_word(
    person: Person, before: str, after: str, asked: str
) -> None:
    person.put("src/string.md", before)
    person.gets("/install ./src")
    person.put("src/string.md", after)
    refused = person.fails("/update tally")
    assert refused.code == "CONFLICT"
    assert asked in refused.text
    assert refused.text.endswith("If its owner wants that: /update tally --accept")
    assert person.read("packages/tally/string.md").decode() == before
    assert "not updated" in person.gets("/update")
    assert person.gets("/update tally --accept").startswith("Updated app:tally")
    assert person.read("packages/tally/string.md").decode() == after


@proves("ACT-45")
def test_updates_come_from_the_source_on_record_alone(person: Person) -> None:
    person.put("src/string.md", app())
    person.put("evil/string.md", app("9"))
    person.gets("/install ./src")
    person.put("packages/tally/.origin.json", json.dumps({"source": f"{person.home}/evil"}))
    person.says("/update tally --accept")
    assert person.read("packages/tally/string.md").decode() == app()


@proves("ACT-45")
def test_a_file_that_changed_in_its_place_is_brought_back(person: Person) -> None:
    source = person.put("src/string.md", app())
    person.gets("/install ./src")
    person.put("packages/tally/string.md", app("0.9"))
    said = person.gets("/update tally")
    assert said.startswith("Updated app:tally (0.9 → 1.0)")
    assert "Put aside: files that its actions changed, in " in said
    assert person.gets("/act.hello", "app:tally") == "hello"
    source.unlink()
    assert person.fails("/update tally").code == "NOT_FOUND"
    assert installed(person) == {"string.md"}


@proves("ACT-45")
def test_one_source_that_is_gone_keeps_no_other_from_being_updated(
    person: Person, web: WebServer
) -> None:
    web.answer = Reply(app().replace("tally", "far"), "text/markdown")
    person.gets(f"/install {web.url}/far.md")
    person.gets(f"/install --link {web.url}/far.md --as linked")
    person.put("src/string.md", app())
    person.gets("/install ./src")
    person.put("src/string.md", app("1.1"))
    web.answer = Reply("", status=500)
    said = person.gets("/update")
    assert f"app:far: not updated. Cannot fetch {web.url}/far.md: HTTP 500" in said
    assert f"app:linked is linked: it is always what {web.url}/far.md offers." in said
    assert "Updated app:tally (1.0 → 1.1)" in said
    missing = person.fails("/update nothing")
    assert missing.text == (
        "ERROR(NOT_FOUND): Package not found: nothing\nInstalled: far, linked, tally"
    )


@proves("ACT-45")
def test_what_is_installed_is_listed_with_version_source_and_description(person: Person) -> None:
    assert person.gets("/apps") == (
        "Installed\n---\n(nothing is installed; /install <source> adds an app or a tool)"
    )
    person.put("src/string.md", app())
    person.gets("/install ./src")
    assert person.gets("/apps") == (
        f"Installed\n---\napp:tally 1.0 — Counts words.\n  from {person.home}/src/string.md"
    )
    person.put("packages/tally/string.md", app("1.2"))
    (listed,) = json.loads(person.gets("/apps --json"))
    assert listed == {
        "name": "tally",
        "kind": "app",
        "version": "1.2",
        "description": "Counts words.",
        "source": f"{person.home}/src/string.md",
        "path": f"{person.home}/packages/tally/string.md",
        "state": "changed",
    }
    assert person.fails("/apps x").text == "ERROR(COMMAND_UNSUPPORTED): Usage: /apps [--json]"


def test_an_action_of_the_page_comes_before_these_commands(person: Person) -> None:
    person.put("page.md", "```act.update\nCLI printf mine\n```\n")
    person.gets("/open page.md")
    assert person.gets("/update") == "mine"
