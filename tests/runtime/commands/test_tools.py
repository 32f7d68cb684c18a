"""`/tool:` through a real daemon."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from tests.requirements import proves
from tests.runtime.commands.conftest import Caller, StartDaemon
from tests.support.web import Reply, WebServer

ECHO = """---
name: Echo Tool
default: say
---
```act.say
CLI printf '%s' {text}
  text, -t: string (required) "What to say"
```
```act.shout
CLI printf '%s!' {text}
  text: string (required)
```
```act.shout.response
{last} = {text}
{Response.body}
```
"""


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon) -> Caller:
    caller = start_daemon()
    (caller.home / "tools").mkdir()
    (caller.home / "tools" / "echo.md").write_text(ECHO, encoding="utf-8")
    return caller


@pytest.fixture
def topic() -> str:
    return f"file:{uuid4().hex}"


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@proves("ACT-32")
def test_a_tool_runs_without_leaving_the_page(call: Caller, topic: str) -> None:
    (call.home / "here.md").write_text("# Here\n", encoding="utf-8")
    call(topic, "/open here.md")
    assert call(topic, "/tool:echo 'a  b'").content == "a  b"
    assert call(topic, '/tool:echo.shout "two\nlines"').content == "two\nlines!"
    assert "here.md" in call(topic, "/info").content
    assert '{last} = "two\nlines"' in call(topic, "/set").content


def test_a_tool_needs_no_open_page(call: Caller, topic: str) -> None:
    assert call(topic, "/tool:echo hi").content == "hi"


@proves("ACT-32")
def test_a_tool_shows_its_own_schema(call: Caller, topic: str) -> None:
    schema = "Action: say\n---\n/tool:echo\n   -t, --text <string> (required) — What to say"
    assert call(topic, "/tool:echo --help").content == schema
    assert call(topic, "/tool:echo").content == schema
    assert call(topic, "/tool:echo.say -h").content == schema.replace("tool:echo", "tool:echo.say")


def test_what_a_tool_does_not_have_is_named(call: Caller, topic: str) -> None:
    assert call(topic, "/tool:nope x").content == "ERROR(NOT_FOUND): Tool not found: nope"
    assert call(topic, "/tool:echo.sing x").content == (
        'ERROR(NOT_FOUND): Action "sing" not found in tool:echo. Available: say, shout'
    )
    (call.home / "tools" / "plain.md").write_text(
        ECHO.replace("default: say\n", ""), encoding="utf-8"
    )
    assert call(topic, "/tool:plain x").content == (
        "ERROR(INVALID_PAYLOAD): No default action for tool:plain. Available: say, shout"
    )
    assert call(topic, "/tool:plain --help").content.startswith("Actions\n---\n/tool:plain.say\n")


def test_tools_are_found_by_name_in_shared_and_installed_places(call: Caller, topic: str) -> None:
    named = call.home / "tools" / "file-name.md"
    named.write_text(ECHO.replace("Echo Tool", "by-name"), encoding="utf-8")
    assert call(topic, "/tool:by-name hi").content == "hi"
    shared = call.daemon.directory / ".string" / "tools"
    shared.mkdir(parents=True)
    (shared / "common.md").write_text(ECHO, encoding="utf-8")
    assert call(topic, "/tool:common hi").content == "hi"
    folder = call.home / "src"
    folder.mkdir()
    (folder / "third.md").write_text(ECHO, encoding="utf-8")
    installed = call(topic, "/install --tool src/third.md --as third")
    assert installed.content.endswith("Use: /tool:third")
    assert call(topic, "/tool:third hi").content == "hi"


@proves("ACT-33")
@pytest.mark.parametrize(
    "entry",
    [
        '  - KEY: "Your key"',
        "  - name: KEY\n    description: Your key",
    ],
)
def test_declared_variables_are_required(call: Caller, topic: str, entry: str) -> None:
    text = f"---\ndefault: go\nenv:\n{entry}\n---\n```act.go\nCLI echo done\n```\n"
    (call.home / "tools" / "strict.md").write_text(text, encoding="utf-8")
    assert call(topic, "/tool:strict").content == (
        'ERROR(INVALID_PAYLOAD): ERROR(ENV_REQUIRED): tool requires $KEY — "Your key"'
    )


@proves("ACT-33")
def test_defaults_of_declared_variables_apply(call: Caller, topic: str) -> None:
    text = (
        '---\ndefault: go\nenv:\n  - COLOUR: "Which"\n    default: blue\n---\n'
        '```act.go\nCLI echo "$COLOUR"\n```\n'
    )
    (call.home / "tools" / "paint.md").write_text(text, encoding="utf-8")
    assert call(topic, "/tool:paint").content == "blue"
    call(topic, '/set $COLOUR = "red"')
    assert call(topic, "/tool:paint").content == "red"


def test_a_linked_tool_may_use_http_only(call: Caller, web: WebServer, topic: str) -> None:
    text = "---\nname: far\ntype: tool\ndefault: go\n---\n```act.go\nCLI echo x\n```\n"
    web.answer = Reply(text, "text/plain")
    assert call(topic, f"/install --link {web.url}/far.md").ok
    assert call(topic, "/tool:far").code == "FILE_NOT_ALLOWED"
