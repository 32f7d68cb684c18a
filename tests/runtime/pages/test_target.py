"""From what was typed to a file or a page: homes, allowed paths, vouched-for directories."""

from pathlib import Path

import pytest

from tests.requirements import proves
from tests.support.daemon import Daemon
from tests.support.http import request
from tests.support.person import Person
from tests.support.web import Reply, WebServer


@pytest.fixture
def project(person: Person) -> Path:
    """A directory beside the home, with a document and a neighbour."""
    directory = person.home.parent / "my project"
    (directory / "docs").mkdir(parents=True)
    (directory / "README.md").write_text("# Project\n\n[@g Guide](docs/guide.md)\n")
    (directory / "docs/guide.md").write_text("# Guide\n")
    return directory


@proves("FILE-01")
def test_outside_is_refused_with_the_way_on(person: Person, project: Path) -> None:
    for command in ("/open {}", "/edit {}", "/write {}\nx", "/append {}\nx", "/verify {}#x"):
        refused = person.fails(command.format(project / "README.md"))
        assert refused.code == "FILE_NOT_ALLOWED"
        first, second = refused.message.split("\n")
        assert first == f"Path outside workspace: {project}/README.md"
        assert f"stringd allow '{project}'" in second
    assert person.fails(f"/ls {project}").code == "FILE_NOT_ALLOWED"
    assert person.fails("/open ../my project/README.md").code == "FILE_NOT_ALLOWED"
    assert (project / "README.md").read_text().startswith("# Project")


@proves("FILE-01")
def test_allowed_paths_are_reached_by_every_topic(person: Person, project: Path) -> None:
    body = {"id": person.id, "home": str(person.home), "allowed_paths": [str(project)]}
    person.gets("/info")
    assert request(person.port, "POST", "/users", body).status == 200
    assert person.gets(f"/open {project}/README.md").startswith(f"Opened {project}/README.md\n")
    assert person.gets("/open @g") == f"Opened {project}/docs/guide.md\n---\n# Guide"
    assert f"cwd:       {project}/docs/" in person.gets("/info")
    person.gets("/write new.md\nx")
    assert (project / "docs/new.md").read_text() == "x"
    body = {**body, "allowed_paths": []}
    assert request(person.port, "POST", "/users", body).status == 200
    assert person.fails("/refresh").code == "FILE_NOT_ALLOWED"


@proves("DEF-04", "FILE-01")
def test_a_neighbour_with_a_longer_name_is_outside(person: Person) -> None:
    twin = Path(f"{person.home}-twin")
    twin.mkdir()
    (twin / "a.md").write_text("x")
    assert person.fails(f"/open {twin}/a.md").code == "FILE_NOT_ALLOWED"


@proves("FILE-02")
def test_a_link_out_of_the_home_is_refused(person: Person, project: Path) -> None:
    (person.home / "out").symlink_to(project)
    for command in ("/open out/README.md", "/write out/new.md\nx", "/ls out", "/open out"):
        assert person.fails(command).code == "FILE_NOT_ALLOWED"
    assert sorted(path.name for path in project.iterdir()) == ["README.md", "docs"]


@proves("FILE-03", "FILE-04")
def test_the_callers_directory_is_where_dots_start(person: Person, project: Path) -> None:
    opened = f"Opened {project}/README.md\n---\n"
    assert person.gets("/open ./README.md", cwd=project).startswith(opened)
    person.put("own/README.md", "# Own\n")
    person.put("own/docs/x.md", "x")
    above = person.gets("/open ../README.md", "file:b", cwd=person.home / "own/docs")
    assert above == "Opened own/README.md\n---\n# Own"
    assert person.gets("/edit ./docs/guide.md", "file:c", cwd=project).startswith("[editing: ")
    person.gets("/write ./new.md\nx", "file:c", cwd=project)
    assert (project / "new.md").read_text() == "x"
    assert person.gets("/ls ./docs", "file:c", cwd=project).startswith(f"Listing {project}/docs/")
    refused = person.fails("/open ../README.md", "file:c", cwd=project / "docs")
    assert refused.code == "FILE_NOT_ALLOWED"


@proves("FILE-03")
def test_it_counts_for_that_request_only(person: Person, project: Path) -> None:
    person.gets("/open ./README.md", cwd=project)
    assert person.fails("/refresh").message.startswith(
        f"Path outside workspace: {project}/README.md\n"
    )
    assert person.gets("/refresh", cwd=project).startswith("Refreshed ")
    assert person.fails("/open ./README.md", "file:other").message.startswith(
        "File not found: ./README.md"
    )


@proves("FILE-04")
def test_an_open_document_is_where_dots_start_instead(person: Person, project: Path) -> None:
    person.put("README.md", "# Mine\n")
    person.put("page.md", "# Page\n")
    person.gets("/open page.md")
    assert person.gets("/open ./README.md", cwd=project).endswith("# Mine")
    person.gets("/open page.md")
    refusal = person.fails("/open ./docs/guide.md", cwd=project).message
    assert f"It exists in {project}: use {project}/docs/guide.md" in refusal
    person.gets("/close")
    assert "# Project" in person.gets("/open ./README.md", cwd=project)


@proves("FILE-05")
def test_bare_names_start_at_home_and_are_then_looked_for_where_the_caller_is(
    person: Person, project: Path
) -> None:
    assert "# Project" in person.gets("/open README.md", cwd=project)
    person.gets("/close")
    assert "# Project" in person.gets("/edit README.md", cwd=project)
    assert "Appended to: README.md" in person.gets("/append README.md\nx", cwd=project)
    assert (project / "README.md").read_text().endswith("\nx")
    assert "guide.md" in person.gets("/ls docs", cwd=project)
    assert person.fails("/open nowhere.md", cwd=project).code == "NOT_FOUND"
    person.gets("/write nowhere.md\nnew", cwd=project)
    person.gets("/write --new README.md\n# Mine\n", cwd=project)
    assert person.read("nowhere.md") == b"new"
    person.put("README.md", "# Mine\n")
    assert person.gets("/open README.md", cwd=project).endswith("# Mine")


@proves("FILE-05")
def test_a_name_as_replies_show_it_works_wherever_the_topic_is(person: Person) -> None:
    person.put("notes/plan.md", "# Plan\n")
    person.put("top.md", "# Top\n")
    person.gets("/open notes/plan.md")
    assert person.gets("/replace notes/plan.md\nPlan\n---\nPlans").startswith("Replaced 1 ")
    assert person.gets("/open notes/plan.md").endswith("# Plans")
    assert person.gets("/append notes/plan.md\nmore").startswith("Appended to: notes/plan.md")
    assert person.read("notes/plan.md") == b"# Plans\nmore"
    # A plain name may be meant for a new file beside the document.
    person.gets("/write top.md\n# New\n")
    assert (person.read("top.md"), person.read("notes/top.md")) == (b"# Top\n", b"# New\n")
    assert person.gets("/open top.md").endswith("# New")
    assert person.fails("/open ./notes/plan.md").code == "NOT_FOUND"


@proves("FILE-06")
def test_the_daemons_data_is_out_of_reach(person: Person, daemon: Daemon) -> None:
    data = daemon.data_dir
    for command in ("/open {}/users.json", "/ls {}", "/write {}/x\nx", "/open {}/sessions.db"):
        refused = person.fails(command.format(data))
        assert refused.code == "FILE_NOT_ALLOWED"
        vouched = person.fails(command.format(data), cwd=data)
        assert vouched.message.startswith("Path belongs to the daemon's own data: ")
    assert not (data / "x").exists()


@proves("FILE-06")
def test_a_home_inside_the_data_directory_is_still_a_home(daemon: Daemon) -> None:
    person = Person(daemon.port, "nested", daemon.data_dir / "homes" / "nested")
    person.gets("/write a.md\nx")
    assert person.gets("/open a.md") == "Opened a.md\n---\nx"
    assert person.fails("/open ../../users.json").code == "FILE_NOT_ALLOWED"


@proves("WEB-08")
def test_a_web_page_leads_to_the_web_only(person: Person, web: WebServer) -> None:
    person.put("secret.md", "x")
    web.answer = Reply(
        f"[@a A](file://{person.home}/secret.md)\n[@b B](app:x)\n[@c C](~/secret.md)\n",
        "text/plain",
    )
    person.gets(f"/open {web.url}/page")
    for name in ("@a", "@b"):
        refused = person.fails(f"/open {name}")
        assert refused.code == "FILE_NOT_ALLOWED"
    assert person.gets("/open ~/secret.md").startswith("Opened secret.md")


def test_other_schemes_are_named(person: Person) -> None:
    refused = person.fails("/open ftp://x.test/y")
    assert refused.text == "ERROR(LOAD_ERROR): Unsupported URI scheme: ftp://x.test/y"
    person.put("a.md", "[@mail Write](mailto:desk@x.test) [@call Call](tel:+123)\n")
    person.gets("/open a.md")
    assert person.fails("/open @mail").message == "Unsupported URI scheme: mailto:desk@x.test"
    assert person.fails("/open @call").message == "Unsupported URI scheme: tel:+123"
    person.put("a:b.md", "# Colon\n")
    assert person.gets("/open a:b.md") == "Opened a:b.md\n---\n# Colon"


def test_schemes_are_read_in_any_case(person: Person, web: WebServer) -> None:
    web.answer = Reply("# Page\n", "text/markdown")
    loud = web.url.replace("http://", "HTTP://")
    assert person.gets(f"/open {loud}/p.md") == f"Opened {web.url}/p.md\n---\n# Page"
    person.put("a.md", "# A\n")
    assert person.gets(f"/open File://{person.home}/a.md") == "Opened a.md\n---\n# A"


def test_links_are_decoded_once(person: Person) -> None:
    person.put("my notes/a b.md", "# AB\n")
    person.put("page.md", "[@x X](my%20notes/a%20b.md) [@y Y](<my notes/a b.md>)\n")
    for name in ("@x", "@y"):
        person.gets("/open ~/page.md")
        assert person.gets(f"/open {name}") == "Opened my notes/a b.md\n---\n# AB"


def test_fragments_are_written_as_browsers_write_them(person: Person, web: WebServer) -> None:
    page = "# P\n\n[@g G](x#gr%C3%B6%C3%9Fe)\n\n## Größe\n\ng\n"
    web.answer = Reply(page, "text/markdown; charset=utf-8")
    person.gets(f"/open {web.url}/x")
    for target in ("@g", "#größe", "#gr%C3%B6%C3%9Fe", f"{web.url}/x#gr%C3%B6%C3%9Fe"):
        assert person.gets(f"/open {target}") == f"Opened {web.url}/x#größe\n---\n## Größe\n\ng"
