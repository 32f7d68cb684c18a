"""`/topics`, `/session`, `/close`."""

import pytest

from tests.requirements import proves
from tests.support.person import Person


@proves("CMD-30")
def test_topics_are_listed_with_what_they_show(person: Person) -> None:
    person.put("a.md", "# A\n")
    person.gets("/open a.md")
    person.gets("/info", "web:x")
    person.gets("true", "bash:dev")
    assert person.gets("/topics") == (
        "Active topics:\n\n"
        "* file:main  file  current: a.md\n"
        "  web:x      web   (no doc)\n"
        f"  bash:dev   bash  cwd: {person.home}\n"
        "\n3 topics open."
    )
    assert person.gets("/topics web", "web:x") == (
        "web topics:\n\n* web:x  web  (no doc)\n\n1 web topic open."
    )
    for form in ("/sessions", "/session", "/session list"):
        assert person.gets(form) == person.gets("/topics")


def test_a_type_without_topics_and_one_that_is_none(person: Person) -> None:
    assert person.gets("/topics app") == "No app topics open."
    refused = person.fails("/topics tab")
    assert refused.code is None
    assert refused.text == (
        "ERROR(UNKNOWN): Unknown topic type: tab\nValid types: file, web, app, bash"
    )


@proves("CMD-30")
def test_a_session_is_closed_but_never_the_last_one(person: Person) -> None:
    person.gets("/info")
    assert person.fails("/session close").text == "ERROR(UNKNOWN): Cannot close last session."
    person.gets("/info", "file:other")
    assert person.gets("/session close other") == "Closed session: file:other"
    assert list(person.sessions()) == ["file:main"]
    person.gets("/info", "file:other")
    assert person.gets("/session close", "file:other") == "Closed session: file:other"
    assert person.fails("/session frob").message == "Unknown session command: /session frob"


@proves("DEF-24")
def test_session_is_an_exact_verb_and_nothing_to_a_shell(person: Person) -> None:
    assert person.fails("/sessionlist").code == "COMMAND_UNSUPPORTED"
    assert person.fails("/session", "bash:dev").code == "EXIT_127"


@pytest.mark.parametrize("command", ["/close", "/close main", "/session close"])
def test_a_closed_topic_shows_no_document_in_its_reply(person: Person, command: str) -> None:
    person.put("a.md", "# A\n")
    person.gets("/info", "file:other")
    person.gets("/open a.md")
    said = person.says(command)
    assert said.head["ok"]
    assert said.head["meta"] is None
