"""Every row of the table, opened in every way, with every capability tried."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.requirements import proves
from tests.runtime.provenance.support import ACTIONS, SECRET, Attempt, Tried, register, trust
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.web import Reply


class Way(NamedTuple):
    """How to open a page: the topic, the command, and the caller's directory."""

    topic: str
    command: str
    cwd: Path | None = None


Ways = Callable[[Attempt, Daemon], Way]


def opened(ways: Ways, attempt: Attempt, daemon: Daemon) -> Tried:
    way = ways(attempt, daemon)
    return attempt.try_everything(way.topic, way.command, way.cwd)


# --- ways to the page of an installed app


def app_topic(attempt: Attempt, daemon: Daemon) -> Way:
    return Way(attempt.install(), "/open")


def app_name(attempt: Attempt, daemon: Daemon) -> Way:
    attempt.install()
    return Way("file:main", f"/open app:{attempt.name}")


def app_path(attempt: Attempt, daemon: Daemon) -> Way:
    attempt.install()
    return Way("file:main", f"/open ~/packages/{attempt.name}/string.md")


def link_to_app(attempt: Attempt, daemon: Daemon) -> Way:
    attempt.install()
    link = attempt.directory / "link.md"
    link.symlink_to(attempt.person.home / "packages" / attempt.name / "string.md")
    return Way("file:main", f"/open {link}", attempt.directory)


APP_WAYS = [app_topic, app_name, app_path, link_to_app]


@proves("PRV-01", "PRV-02", "PRV-03", "PRV-06")
@pytest.mark.parametrize("ways", APP_WAYS)
def test_an_installed_app_may_do_what_it_declares(
    attempt: Attempt, daemon: Daemon, ways: Ways
) -> None:
    tried = opened(ways, attempt, daemon)
    assert tried.ran_default
    assert "default:" not in tried.opened.message
    assert tried.cli.text == "ran"
    assert tried.ran_command
    assert set(tried.sent) == set(ACTIONS)
    assert tried.sent["/named"].headers["x-key"] == SECRET
    assert f"home={attempt.person.home}".replace("/", "%2F") in tried.sent["/where"].target.replace(
        "/", "%2F"
    )
    assert tried.saved


# --- ways to a file of the user's own


def home_path(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.person.home)
    return Way("file:main", f"/open {path.name}")


def home_link(attempt: Attempt, daemon: Daemon) -> Way:
    attempt.file(attempt.person.home)
    attempt.person.put("index.md", f"[@page Page](./{attempt.name}.md)\n")
    attempt.person.gets("/open index.md")
    return Way("file:main", "/open @page")


def home_menu(attempt: Attempt, daemon: Daemon) -> Way:
    attempt.file(attempt.person.home)
    attempt.person.put("menu.md", f"[@page Page](./{attempt.name}.md)\n")
    attempt.person.put("index.md", "[!nav:m](./menu.md)\n# Index\n")
    attempt.person.gets("/open index.md")
    return Way("file:main", "/open @m.page")


def link_to_home(attempt: Attempt, daemon: Daemon) -> Way:
    link = attempt.directory / "link.md"
    link.symlink_to(attempt.file(attempt.person.home))
    return Way("file:main", f"/open {link}", attempt.directory)


def home_tab(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.person.home)
    attempt.person.gets(f"/open --tab file:tab {path}")
    return Way("file:tab", "/refresh")


def trusted_path(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    trust(daemon, path)
    return Way("file:main", f"/open ./{path.name}", attempt.directory)


def link_to_trusted(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    trust(daemon, path)
    (attempt.person.home / "link.md").symlink_to(path)
    return Way("file:main", "/open link.md", attempt.directory)


def alias_of_home(attempt: Attempt, daemon: Daemon) -> Way:
    register(attempt.person, attempt.name, attempt.file(attempt.person.home))
    return Way("file:main", f"/open {attempt.name}")


OWN_WAYS = [
    home_path,
    home_link,
    home_menu,
    link_to_home,
    home_tab,
    trusted_path,
    link_to_trusted,
    alias_of_home,
]


@proves("PRV-01", "PRV-02", "PRV-03", "PRV-06")
@pytest.mark.parametrize("ways", OWN_WAYS)
def test_a_file_of_the_users_own_may_do_what_it_is_called_for(
    attempt: Attempt, daemon: Daemon, ways: Ways
) -> None:
    tried = opened(ways, attempt, daemon)
    assert not tried.ran_default
    assert tried.opened.message.endswith("\ndefault: /act.go")
    assert tried.cli.text == "ran"
    assert set(tried.sent) == set(ACTIONS)
    assert tried.sent["/named"].headers["x-key"] == SECRET
    assert tried.saved


# --- ways to any other file


def clone_path(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    return Way("file:main", f"/open ./{path.name}", attempt.directory)


def clone_directory(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    path.rename(attempt.directory / "string.md")
    return Way("file:main", f"/open {attempt.directory}", attempt.directory)


def allowed_path(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    person = attempt.person
    fields = {"id": person.id, "home": str(person.home), "allowed_paths": [str(path.parent)]}
    assert request(person.port, "POST", "/users", fields).status == 200
    return Way("file:main", f"/open {path}")


def link_to_clone(attempt: Attempt, daemon: Daemon) -> Way:
    (attempt.person.home / "link.md").symlink_to(attempt.file(attempt.directory))
    return Way("file:main", "/open link.md", attempt.directory)


def folder_linked_into_home(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    (attempt.person.home / "clone").symlink_to(attempt.directory)
    return Way("file:main", f"/open clone/{path.name}", attempt.directory)


def clone_by_link(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    attempt.person.put("index.md", f"[@page Page]({path})\n")
    attempt.person.gets("/open index.md")
    return Way("file:main", "/open @page", attempt.directory)


def clone_by_menu(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory)
    attempt.person.put("menu.md", f"[@page Page]({path})\n")
    attempt.person.put("index.md", "[!nav:m](./menu.md)\n# Index\n")
    attempt.person.gets("/open index.md")
    return Way("file:main", "/open @m.page", attempt.directory)


def part_of_a_home_page(attempt: Attempt, daemon: Daemon) -> Way:
    """A document of the home whose source directory holds a link to the clone."""
    path = attempt.file(attempt.directory)
    attempt.person.put("whole.md", "---\ndefault: go\n---\n# Whole\n\n[!include:part]()\n")
    folder = attempt.person.home / "whole.md.source"
    folder.mkdir()
    (folder / "part.md").symlink_to(path)
    return Way("file:main", "/open whole.md", attempt.directory)


def alias_of_clone(attempt: Attempt, daemon: Daemon) -> Way:
    register(attempt.person, attempt.name, attempt.file(attempt.directory))
    return Way("file:main", f"/open {attempt.name}", attempt.directory)


def app_topic_of_clone(attempt: Attempt, daemon: Daemon) -> Way:
    register(attempt.person, attempt.name, attempt.file(attempt.directory))
    return Way(f"app:{attempt.name}", "/open", attempt.directory)


def changed_after_trust(attempt: Attempt, daemon: Daemon) -> Way:
    path = attempt.file(attempt.directory, "# Harmless\n")
    trust(daemon, path)
    attempt.file(attempt.directory)
    return Way("file:main", f"/open ./{path.name}", attempt.directory)


def kept_by_an_app(attempt: Attempt, daemon: Daemon) -> Way:
    """What apps keep in the home may be text from anywhere."""
    path = attempt.file(attempt.person.home / ".string-work" / "shop")
    return Way("file:main", f"/open {path}")


def beside_an_app(attempt: Attempt, daemon: Daemon) -> Way:
    """A file that appeared in a package after it was installed."""
    attempt.install()
    path = attempt.file(attempt.person.home / "packages" / attempt.name)
    return Way("file:main", f"/open {path}")


def never_installed(attempt: Attempt, daemon: Daemon) -> Way:
    folder = attempt.person.home / "packages" / attempt.name
    path = attempt.file(folder).rename(folder / "string.md")
    register(attempt.person, attempt.name, path)
    return Way(f"app:{attempt.name}", "/open")


def swapped(attempt: Attempt, daemon: Daemon) -> Way:
    topic = attempt.install()
    path = attempt.person.home / "packages" / attempt.name / "string.md"
    path.write_text(attempt.declared() + "\n", encoding="utf-8")
    return Way(topic, "/open")


FOREIGN_WAYS = [
    clone_path,
    clone_directory,
    allowed_path,
    link_to_clone,
    folder_linked_into_home,
    clone_by_link,
    clone_by_menu,
    part_of_a_home_page,
    alias_of_clone,
    app_topic_of_clone,
    changed_after_trust,
    kept_by_an_app,
    beside_an_app,
    never_installed,
    swapped,
]


@proves("PRV-01", "PRV-02", "PRV-04", "PRV-06")
@pytest.mark.parametrize("ways", FOREIGN_WAYS)
def test_any_other_file_runs_saves_and_learns_nothing(
    attempt: Attempt, daemon: Daemon, ways: Ways
) -> None:
    tried = opened(ways, attempt, daemon)
    assert tried.opened.head["ok"], tried.opened.text
    assert not tried.ran_default
    assert "default:" not in tried.opened.message
    assert not tried.ran_command
    assert tried.cli.code == "FILE_NOT_ALLOWED"
    assert "stringd trust /" in tried.cli.text or "/install" in tried.cli.text
    # The recorder is at a private address, which none of its actions may reach.
    assert tried.sent == {}
    assert "is a private address" in tried.replies["plain"].text
    assert "Unresolved environment variable(s):\n  $API_KEY" in tried.replies["named"].text
    assert "$HOME" in tried.replies["where"].text
    assert not tried.saved


# --- ways to a web page


def web_page(attempt: Attempt) -> None:
    attempt.pages["/page"] = Reply(attempt.text(), "text/markdown")


def by_url(attempt: Attempt, daemon: Daemon) -> Way:
    web_page(attempt)
    return Way("file:main", f"/open {attempt.web.url}/page")


def by_redirect(attempt: Attempt, daemon: Daemon) -> Way:
    web_page(attempt)
    attempt.pages["/moved"] = Reply(status=302, headers=(("Location", "/page"),))
    return Way("file:main", f"/open {attempt.web.url}/moved")


def by_link_of_home(attempt: Attempt, daemon: Daemon) -> Way:
    web_page(attempt)
    attempt.person.put("index.md", f"[@page Page]({attempt.web.url}/page)\n")
    attempt.person.gets("/open index.md")
    return Way("file:main", "/open @page")


def by_menu_of_home(attempt: Attempt, daemon: Daemon) -> Way:
    web_page(attempt)
    attempt.pages["/menu"] = Reply("[@page Page](/page)\n", "text/markdown")
    attempt.person.put("index.md", f"[!nav:m]({attempt.web.url}/menu)\n# Index\n")
    attempt.person.gets("/open index.md")
    return Way("file:main", "/open @m.page")


def as_linked_app(attempt: Attempt, daemon: Daemon) -> Way:
    web_page(attempt)
    attempt.person.gets(f"/install --link {attempt.web.url}/page")
    attempt.person.gets(f'/set $API_KEY = "{SECRET}"', f"app:{attempt.name}")
    return Way(f"app:{attempt.name}", "/open")


def as_manifest(attempt: Attempt, daemon: Daemon) -> Way:
    files = [{"path": "string.md", "content": attempt.text()}]
    attempt.pages["/app"] = Reply(json.dumps({"name": "x", "files": files}))
    return Way("file:main", f"/open {attempt.web.url}/app")


def as_an_answer(attempt: Attempt, daemon: Daemon) -> Way:
    """What an action of the user's own page answered."""
    web_page(attempt)
    attempt.person.put("asks.md", f"```act.ask\nGET {attempt.web.url}/page\n```\n")
    attempt.person.gets("/open asks.md")
    return Way("file:main", "/act.ask")


def inside_an_app_topic(attempt: Attempt, daemon: Daemon) -> Way:
    topic = attempt.install()
    attempt.person.gets("/open", topic)
    attempt.opened.unlink()
    web_page(attempt)
    return Way(topic, f"/open {attempt.web.url}/page")


WEB_WAYS = [
    by_url,
    by_redirect,
    by_link_of_home,
    by_menu_of_home,
    as_linked_app,
    as_manifest,
    as_an_answer,
    inside_an_app_topic,
]


@proves("PRV-01", "PRV-02", "PRV-05", "PRV-06")
@pytest.mark.parametrize("ways", WEB_WAYS)
def test_a_web_page_may_only_ask_its_own_origin(
    attempt: Attempt, daemon: Daemon, ways: Ways
) -> None:
    tried = opened(ways, attempt, daemon)
    assert not tried.ran_default
    assert "default:" not in tried.opened.message
    assert not tried.ran_command
    assert tried.cli.code == "FILE_NOT_ALLOWED"
    assert set(tried.sent) == {"/plain", "/save"}
    assert "A web page may not use $NAMES" in tried.replies["named"].text
    assert "$HOME" in tried.replies["where"].text
    assert "to: write failed: a web page may not write files" in tried.replies["save"].text
    assert not tried.saved
