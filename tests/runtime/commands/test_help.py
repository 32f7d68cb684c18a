"""`/help`."""

from stringd.runtime.commands.table import COMMANDS
from tests.requirements import proves
from tests.support.person import Person

GROUPS = ["Navigation", "Actions", "State", "Editing", "Topics", "Tools", "Shell", "Packages"]


@proves("CMD-13")
def test_every_group_and_command_is_there(person: Person) -> None:
    said = person.gets("/help")
    assert said.startswith("String Commands\n---\n## String Commands\n\n")
    assert [line[4:] for line in said.split("\n") if line.startswith("### ")] == GROUPS
    aliases = {"action", "sessions", "help"}
    assert [name for name in COMMANDS if name not in aliases and f"\n/{name}" not in said] == []


def test_the_pages_actions_follow(person: Person) -> None:
    person.put("a.md", '```act.find\nGET https://x.test/{q}\n  q: string (required) "What"\n```\n')
    person.gets("/open a.md")
    assert person.gets("/help").endswith("## Actions on this page\n/act.find --q <string>")


def test_what_is_installed_is_named(person: Person) -> None:
    assert "\nInstalled" not in person.gets("/help")
    person.put("greet.md", "# Hello\n")
    person.gets("/install ~/greet.md --app")
    person.gets("/install ~/greet.md --tool --as count")
    [line] = [each for each in person.gets("/help").split("\n") if each.startswith("Installed")]
    assert line.split(maxsplit=1)[1] == "app:greet, tool:count"
