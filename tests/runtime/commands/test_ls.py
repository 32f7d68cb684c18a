"""`/ls`."""

import pytest

from tests.requirements import proves
from tests.support.person import Person


@proves("CMD-14", "DEF-03")
def test_directories_come_first_and_names_sort_as_people_do(person: Person) -> None:
    for name in ("b.md", "A.md", "Émile.md", "z z.md", "서울.md", ".hidden", "Sub/x", "an/y"):
        person.put(name, "x")
    rows = ["an/", "Sub/", "A.md", "b.md", "Émile.md", "z z.md", "서울.md"]
    assert person.gets("/ls") == "Listing ./\n---\n" + "\n".join(f"  {row}" for row in rows)
    assert person.gets("/ls Sub") == "Listing Sub/\n---\n  x"
    assert person.gets("/ls ~/Sub/../an") == "Listing an/\n---\n  y"


def test_it_starts_where_the_topic_stands(person: Person) -> None:
    person.put("notes/plan.md", "# P\n")
    person.put("notes/sub/x.md", "x\n")
    person.gets("/open notes/plan.md")
    assert person.gets("/ls") == "Listing notes/\n---\n  sub/\n  plan.md"
    assert person.gets("/ls sub") == "Listing notes/sub/\n---\n  x.md"


def test_an_empty_directory_says_so(person: Person) -> None:
    (person.home / "void").mkdir()
    assert person.gets("/ls void") == "Listing void/\n---\n  (empty)"


def test_what_is_no_directory_is_refused(person: Person) -> None:
    person.put("a.md", "x")
    assert person.fails("/ls a.md").text == "ERROR(INVALID_TARGET): Not a directory: a.md"
    assert person.fails("/ls gone").text == "ERROR(NOT_FOUND): Not found: gone"
    assert person.fails("/ls /etc").code == "FILE_NOT_ALLOWED"


def test_a_directory_elsewhere_is_shown_by_its_whole_path(person: Person) -> None:
    project = person.home.parent / "project"
    project.mkdir()
    (project / "x.md").touch()
    assert person.gets("/ls ./", cwd=project) == f"Listing {project}/\n---\n  x.md"


@pytest.mark.parametrize("kind", ["web", "app"])
def test_other_topics_have_nothing_to_list(person: Person, kind: str) -> None:
    refused = person.fails("/ls", f"{kind}:x")
    assert refused.code == "INVALID_TARGET"
    first, second = refused.message.split("\n")
    assert first == (f"/ls is not available for {kind} topics — there is no filesystem to list.")
    assert "/open" in second
    assert "/nav" in second
