"""`/open --tab`."""

from tests.support.person import Person
from tests.support.web import Reply, WebServer


def test_a_document_opens_in_a_topic_of_its_own(person: Person) -> None:
    person.put("sub/a.md", "# A\n\n[@b B](b.md)\n")
    person.put("sub/b.md", "# B\n\n## S\n\ns\n")
    person.gets("/open sub/a.md")
    person.gets("/set {city} = Seoul")
    said = person.says("/open --tab notes b.md#s")
    assert said.text == "Opened sub/b.md#s\nTopic: file:notes\n---\n## S\n\ns"
    assert said.meta["uri"].endswith("sub/a.md")
    assert person.gets("/set", "notes") == 'Variables\n---\n{city} = "Seoul"'
    assert person.fails("/back", "notes").code == "INVALID_TARGET"
    assert person.gets("/open --tab app:x @b").startswith("Opened sub/b.md\nTopic: app:x\n")
    person.gets("/open b.md")
    assert person.gets("/open --tab here #s").startswith("Opened sub/b.md#s\nTopic: file:here\n")


def test_an_address_alone_gets_the_next_free_tab(person: Person, web: WebServer) -> None:
    web.answer = Reply("# P", "text/markdown")
    for number in (1, 2):
        assert person.gets(f"/open --tab {web.url}/p") == (
            f"Opened {web.url}/p\nTopic: web:tab_{number}\n---\n# P"
        )


def test_what_cannot_be_opened_makes_no_topic(person: Person) -> None:
    person.gets("/info")
    assert person.fails("/open --tab notes gone.md").code == "NOT_FOUND"
    for form in ("--tab notes", "--tab", "--tab a!b x.md", "--tab bash:x y.md", "--tab n #s"):
        assert person.fails(f"/open {form}").code == "INVALID_TARGET"
    assert person.fails("/open --tab").message == "Usage: /open --tab <topic> <target>"
    assert person.fails("/open --edit").message.startswith("Usage: /edit")
    assert set(person.sessions()) == {"file:main"}


def test_an_open_topic_is_not_taken_over(person: Person) -> None:
    person.put("a.md", "# A\n")
    person.gets("/info", "file:notes")
    for name in ("notes", "main"):
        refused = person.fails(f"/open --tab {name} a.md")
        assert refused.code == "CONFLICT"
        assert refused.message.startswith(f"Topic already open: file:{name}\n")
