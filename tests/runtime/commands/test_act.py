"""`/act` through a real daemon, against a real HTTP server."""

import json
import os
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from uuid import uuid4

import pytest

from tests.requirements import proves
from tests.runtime.commands.conftest import Caller, StartDaemon
from tests.support.daemon import WAIT_SECONDS
from tests.support.web import Asked, Reply, WebServer

SHOP = """---
name: shop
type: app
requires: [SHOP_KEY]
hosts: ["{host}"]
---
# Shop

```act.find
GET {url}/items?kind={{kind}} -H "X-Key: $SHOP_KEY"
  kind, -k: string (required) "Item kind"
  limit: number "How many" = "3"
```

```act.find.response
{{total}} = {{Response.body.total}}
{{total}} items of kind {{kind}}

for: it in Response.body.items
{{@item}} = ({{it.id}}, {{it.shop}})
- {{@item}}: {{it.name}} ({{it.tags[0]}})
end:

next: /act.buy @item-N
```

```act.buy
POST {url}/shops/{{item[1]}}/orders -d '{{"id":"{{item[0]}}","note":"{{note}}"}}'
  item: tuple (required) "@item-N"
  note, -n: string "Gift note" = ""
```
"""

ITEMS = (
    '{"total":2,"items":[{"id":"a1","shop":"s9","name":"Green","tags":["hot"]},'
    '{"id":"b2","shop":"s9","name":"Black","tags":[]}]}'
)


@pytest.fixture(scope="module")
def call(start_daemon: StartDaemon) -> Caller:
    return start_daemon(DAEMON_MARKER="marker-71c2")


@pytest.fixture
def web() -> Iterator[WebServer]:
    with WebServer() as server:
        yield server


@pytest.fixture
def topic() -> str:
    return f"file:{uuid4().hex}"


def page(call: Caller, topic: str, text: str, name: str | None = None) -> Path:
    """Write a document into the home and open it in a topic."""
    path = call.home / (name or f"{uuid4().hex}.md")
    path.write_text(text, encoding="utf-8")
    reply = call(topic, f"/open {path}")
    assert reply.ok, reply.content
    return path


def app(call: Caller, web: WebServer, text: str) -> str:
    """Install a document, given from the middle of its frontmatter on; the topic of the app."""
    name = f"a{uuid4().hex[:8]}"
    path = call.home / f"{name}.md"
    head = f"---\nname: {name}\ntype: app\nhosts: ['{web.host}']\n"
    path.write_text(f"{head}{text}", encoding="utf-8")
    assert call("file:main", f"/install {path}").ok
    return f"app:{name}"


@proves("ACT-01")
def test_the_shop_works_word_for_word(call: Caller, web: WebServer) -> None:
    def answer(asked: Asked) -> Reply:
        return Reply(ITEMS) if asked.method == "GET" else Reply('{"ok":true}')

    web.answer = answer
    source = call.home / "shop.md"
    source.write_text(SHOP.format(url=web.url, host=web.host), encoding="utf-8")
    installed = call("file:main", "/install shop.md")
    assert installed.ok, installed.content
    topic = "app:shop"
    assert call(topic, '/set $SHOP_KEY = "k-1"').content == '$SHOP_KEY = "k-1" (shop)'

    found = call(topic, "/act.find tea")
    assert (web.last.method, web.last.target) == ("GET", "/items?kind=tea&limit=3")
    assert web.last.headers["x-key"] == "k-1"
    assert found.content == (
        "2 items of kind tea\n\n- @item-1: Green (hot)\n- @item-2: Black ()\n\n"
        "next: /act.buy @item-N"
    )
    bought = call(topic, "/act.buy @item-2 -n 'say \"hi\"'")
    assert bought.content == '{"ok":true}'
    assert (web.last.method, web.last.target) == ("POST", "/shops/s9/orders")
    assert web.last.body == '{"id":"b2","note":"say \\"hi\\""}'
    bare = call(topic, "/act.buy")
    assert bare.ok
    assert bare.content == (
        "Action: buy\n---\n/act.buy\n"
        "   --item <tuple> (required) — @item-N\n"
        "   -n, --note <string> (optional) — Gift note"
    )
    refused = call(topic, "/act.buy --note x")
    assert refused.content == (
        "ERROR(INVALID_PAYLOAD): Missing required flags: item\n\n"
        "Usage:\n  --item <tuple> (required)\n  --note <string>"
    )
    unknown = call(topic, "/act.buy @nope")
    assert unknown.content == (
        "ERROR(NOT_FOUND): Unknown shortcut: @nope\nAvailable: @item-1, @item-2"
    )


@proves("ACT-02", "ACT-03", "ACT-04")
def test_listing_shows_what_callers_pass_and_nothing_else(call: Caller, topic: str) -> None:
    page(
        call,
        topic,
        '```act.search\nGET http://h.test/s?q={query}\n  query, -q: string (required) "Terms"\n'
        '  limit: number "Max results"\n```\n\n```act.ping\nGET http://h.test/ping\n```\n',
    )
    expected = (
        "Actions\n---\n/act.search\n"
        "   -q, --query <string> (required) — Terms\n"
        "   --limit <number> (optional) — Max results\n\n"
        "/act.ping\n   (no flags)"
    )
    for form in ("/act", "/act --help", "/act -h", "/action"):
        assert call(topic, form).content == expected
    for form in ("/act.search --help", "/act search -h", "/action.search", "/act.SEARCH"):
        assert call(topic, form).content.startswith(
            "Action: search\n---\n/act.search\n   -q, --query"
        )


@proves("ACT-05")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (
            "/act.nope",
            (
                'ERROR(NOT_FOUND): Action not found: "nope"\nAvailable: go, cli\n'
                "Use /act.<name> --help to inspect an action."
            ),
        ),
        (
            "/act.go a b c d",
            (
                "ERROR(INVALID_PAYLOAD): Too many positional arguments for /act.go.\n"
                "Expected up to 3 positional values (fields: q, n, unit), got 4.\n"
                "Use -- to pass values that start with '-'."
            ),
        ),
        (
            "/act.go --q",
            (
                "ERROR(INVALID_PAYLOAD): Flag --q requires a value (declared type: string).\n"
                "Usage: /act.go --q <string>"
            ),
        ),
        (
            "/act.go $HOME",
            (
                "ERROR(INVALID_PAYLOAD): $var cannot be used in command arguments. "
                "Use {var} for session variables, $var in action definitions.\n"
                "In single quotes it is text: '$NAME'."
            ),
        ),
        (
            "/act.go x --n many",
            (
                'ERROR(INVALID_PAYLOAD): --n must be a number; got "many".\n'
                "Usage: /act.go --n <number>"
            ),
        ),
        (
            "/act.go x --n 51",
            (
                'ERROR(INVALID_PAYLOAD): --n must be at most 50; got "51".\n'
                "Usage: /act.go --n <number>"
            ),
        ),
        (
            "/act.go x --unit k",
            (
                'ERROR(INVALID_PAYLOAD): --unit must be one of: c, f; got "k".\n'
                "Usage: /act.go --unit <c|f>"
            ),
        ),
        ("/act.go --q-file", "ERROR(INVALID_PAYLOAD): --q-file requires a file path."),
        (
            "/act.go --q x --q-file f",
            "ERROR(INVALID_PAYLOAD): Pass either --q or --q-file, not both.",
        ),
        (
            "/act.go --q-file missing.txt",
            "ERROR(INVALID_PAYLOAD): --q-file: cannot read missing.txt: No such file or directory",
        ),
        ("/act.go --q-file .", "ERROR(INVALID_PAYLOAD): --q-file: not a regular file: ."),
        (
            "/act.go @nope",
            "ERROR(NOT_FOUND): Unknown shortcut: @nope\n(no shortcuts available yet)",
        ),
    ],
)
def test_what_cannot_be_understood_is_refused_with_the_way_on(
    call: Caller, topic: str, command: str, expected: str
) -> None:
    page(
        call,
        topic,
        "```act.go\nGET http://127.0.0.1:9/x?q={q}\n  q: string (required)\n"
        "  n: number (optional, max:50)\n  unit: string (optional, c|f)\n```\n"
        "```act.cli\nCLI echo hi\n```\n",
    )
    assert call(topic, command).content == expected


@proves("ACT-06")
def test_actions_need_a_document(call: Caller, topic: str) -> None:
    assert call(topic, "/act").content == (
        "ERROR(INVALID_TARGET): No document open. Use /open <uri> first."
    )
    page(call, topic, "# Plain\n")
    assert call(topic, "/act").content == "Actions\n---\nNo actions defined on this page."
    assert call(topic, "/act.x").content == (
        'ERROR(NOT_FOUND): Action not found: "x"\nAvailable: none\n'
        "No actions defined on current document."
    )
    assert call("app:missing", "/act.x").content.startswith(
        "ERROR(NOT_FOUND): App 'missing' is not installed. Run /install <source> to install it."
    )


@proves("ACT-07", "ACT-08")
def test_leftover_values_are_sent_and_a_plain_query_survives(
    call: Caller, web: WebServer, topic: str
) -> None:
    page(
        call,
        topic,
        f"```act.all\nGET {web.url}/s?q={{q}}&page=1\n  q: string\n  page: number\n"
        '  extra: string\n  cursor: string "next" = ""\n```\n'
        f"```act.raw\nGET {web.url}/w?format=%l:+%C+%t&m\n```\n"
        f"```act.post\nPOST {web.url}/p/{{id}}\n  id: string\n  limit: number\n"
        "  flag: boolean\n```\n"
        f"```act.del\nDELETE {web.url}/d\n  id: string\n```\n",
    )
    call(topic, "/act.all --q 'a b&c/é' --page 4 --extra \"x y\"")
    assert web.last.target == "/s?q=a%20b%26c%2F%C3%A9&page=4&extra=x+y&cursor="
    assert web.last.headers["accept"] == "text/markdown, text/plain"
    call(topic, "/act.raw")
    assert web.last.target == "/w?format=%l:+%C+%t&m"
    call(topic, "/act.post 7 --limit 5 --flag")
    assert (web.last.target, web.last.body) == ("/p/7", '{"limit":"5","flag":"true"}')
    assert web.last.headers["content-type"] == "application/json"
    call(topic, "/act.del 9")
    assert (web.last.method, web.last.target) == ("DELETE", "/d?id=9")


@proves("ACT-09")
def test_http_failures_say_what_happened(call: Caller, web: WebServer, topic: str) -> None:
    page(
        call,
        topic,
        f"```act.get\nGET {web.url}/x\n```\n"
        "```act.off\nGET http://127.0.0.1:9/x\n```\n"
        "```act.rel\nGET ./x\n```\n",
    )
    web.answer = Reply("gone", status=404)
    assert call(topic, "/act.get").content == f"ERROR(NOT_FOUND): Not found: {web.url}/x"
    web.answer = Reply("x" * 600, status=503)
    assert call(topic, "/act.get").content == (
        f"ERROR(LOAD_ERROR): HTTP 503 at {web.url}/x\n{'x' * 500}"
    )
    web.answer = Reply("", status=500)
    assert call(topic, "/act.get").content == f"ERROR(LOAD_ERROR): HTTP 500 at {web.url}/x"
    assert call(topic, "/act.off").content.startswith("ERROR(LOAD_ERROR): Network error: ")
    assert call(topic, "/act.rel").content.startswith(
        "ERROR(LOAD_ERROR): Actions can only topic HTTP endpoints (got: file://"
    )


@proves("ACT-10")
def test_markdown_and_html_answers_open_other_answers_do_not(
    call: Caller, web: WebServer, topic: str
) -> None:
    path = page(call, topic, f"```act.get\nGET {web.url}/doc\n```\n")
    web.answer = Reply('{"a": 1}\n')
    assert call(topic, "/act.get").content == '{"a": 1}'
    web.answer = Reply("plain\n", "text/plain")
    assert call(topic, "/act.get").content == "plain"
    web.answer = Reply("# Deep\n\ntext\n", "text/markdown")
    assert call(topic, "/act.get").content == f"Opened {web.url}/doc\n---\n# Deep\n\ntext"
    assert call(topic, "/back").content.startswith(f"Back to {path.name}")
    web.answer = Reply("<h1>Web</h1><p>p</p>", "text/html")
    assert "# Web" in call(topic, "/act.get").content


@proves("ACT-11")
def test_a_command_runs_where_its_document_lies(call: Caller, topic: str) -> None:
    folder = call.home / uuid4().hex
    folder.mkdir()
    page(
        call,
        topic,
        "```act.where\nCLI pwd; echo to-stderr >&2; echo last\n```\n"
        "```act.fail\nCLI echo broken; exit 3\n```\n"
        "```act.dead\nCLI kill -9 $$\n```\n",
        f"{folder.name}/app.md",
    )
    assert call(topic, "/act.where").content == f"{folder}\nto-stderr\nlast"
    assert call(topic, "/act.fail").content == "ERROR(EXIT_3): broken"
    assert call(topic, "/act.dead").content == "ERROR(EXIT_1): "


@proves("ACT-12")
def test_a_command_sees_a_minimal_environment(call: Caller, topic: str) -> None:
    page(call, topic, "```act.env\nCLI env\n```\n")
    lines = call(topic, "/act.env").content.splitlines()
    names = {line.partition("=")[0] for line in lines}
    assert "DAEMON_MARKER" not in names
    assert not any(name.startswith("STRINGD_") for name in names)
    assert {"PATH", "HOME", "TERM", "CWD", "CURRENT_FILE", "STRING_HOME"} <= names
    assert f"HOME={call.daemon.directory}" in lines


@proves("ACT-13")
def test_context_variables_are_there(call: Caller, topic: str) -> None:
    path = page(
        call,
        topic,
        "```act.show\nCLI printf '%s|' $HOME '$CURRENT_FILE' \"$CURRENT_TARGET\" $CWD\n```\n"
        "```act.args\nCLI printf '[%s]' $ARGS\n```\n",
    )
    assert call(topic, "/act.show").content == f"{call.home}|{path}|{topic}|{call.home}|"
    shown = call(topic, "/act.args 'a b' ; $(touch pwned) `id`")
    assert shown.ok
    assert shown.content == "[a b][;][$(touch][pwned)][`id`]"
    assert not (call.home / "pwned").exists()
    assert call(topic, "/act.args log --n=3 -x 'a b' -- -5").content == (
        "[log][--n=3][-x][a b][--][-5]"
    )


@proves("ACT-14")
def test_a_remote_page_cannot_run_commands(call: Caller, web: WebServer, topic: str) -> None:
    web.answer = Reply("---\ndefault: run\n---\n# R\n```act.run\nCLI echo hi\n```\n", "text/plain")
    assert "# R" in call(topic, f"/open {web.url}/page.md").content
    reply = call(topic, "/act.run")
    assert reply.content == (
        "ERROR(FILE_NOT_ALLOWED): CLI actions are only allowed from local file:// documents or "
        "locally installed apps. Remote SFMD can only run HTTP actions because remote content may "
        "change after review."
    )


@proves("ACT-15")
def test_values_may_come_from_files_variables_and_several_lines(
    call: Caller, web: WebServer, topic: str
) -> None:
    page(call, topic, f"```act.send\nPOST {web.url}/n\n  text: string (required)\n```\n")
    (call.home / "draft.txt").write_text("{who} has $5 & $HOME\n", encoding="utf-8")
    call(topic, "/act.send --text-file draft.txt")
    assert json.loads(web.last.body) == {"text": "{who} has $5 & $HOME\n"}
    call(topic, "/set who = Ann")
    call(topic, '/act.send "hi {who}, {nobody}\nsecond line"')
    assert json.loads(web.last.body) == {"text": "hi Ann, {nobody}\nsecond line"}
    call(topic, "/act.send @@ann")
    assert json.loads(web.last.body) == {"text": "@ann"}
    call(topic, "/act.send -- -5")
    assert json.loads(web.last.body) == {"text": "-5"}
    big = call.home / "big.txt"
    big.write_bytes(b"x" * 1048577)
    assert call(topic, "/act.send --text-file big.txt").content == (
        "ERROR(INVALID_PAYLOAD): --text-file: file too large — big.txt is 1048577 bytes, "
        "limit is 1048576 bytes (1 MiB)."
    )


@proves("ACT-16")
def test_the_default_action_runs_after_opening_unless_it_needs_something(
    call: Caller, web: WebServer
) -> None:
    web.answer = Reply('{"now":"12:00"}')
    action = (
        f"```act.now\nGET {web.url}/now\n```\n"
        "```act.now.response\nIt is {Response.body.now}\n```\n"
    )
    topic = app(call, web, f"default: now\n---\n# Clock\n{action}")
    assert call(topic, "/open").content.endswith("# Clock\n\n---\n\nIt is 12:00")
    assert call(topic, "/refresh").content.endswith("---\n\nIt is 12:00")
    web.answer = Reply("", status=500)
    assert call(topic, "/refresh").content.endswith("# Clock")
    needy = f"```act.x\nGET {web.url}/\n  a: string (required)\n```\n"
    topic = app(call, web, f"default: x\n---\n# Needy\n{needy}")
    assert call(topic, "/open").content.endswith("# Needy")


def test_a_command_in_which_a_value_could_become_one_is_not_started(
    call: Caller, topic: str, tmp_path: Path
) -> None:
    ran = tmp_path / "ran"
    page(call, topic, f"```act.x\nCLI touch {ran}; eval {{q}}\n  q: string\n```\n")
    answer = call(topic, "/act.x harmless").content
    assert answer.startswith("ERROR(INVALID_PAYLOAD): Nothing was run")
    assert "Safe spelling: " in answer
    assert not ran.exists()


def test_a_value_like_an_option_is_refused_unless_its_field_admits_it(
    call: Caller, topic: str
) -> None:
    page(
        call,
        topic,
        "```act.x\nCLI printf '[%s]' {q}\n  q: string\n```\n"
        "```act.n\nCLI printf '[%s]' {q}\n  q: number\n```\n"
        "```act.d\nCLI printf '[%s]' {q}\n  q: string (dash: true)\n```\n",
    )
    assert call(topic, "/act.x --q=-rf").content.startswith(
        'ERROR(INVALID_PAYLOAD): --q must not begin with "-"'
    )
    assert call(topic, "/act.n --q=-5").content == "[-5]"
    assert call(topic, "/act.d --q=-rf").content == "[-rf]"


@pytest.mark.parametrize("name", ["draft-here.txt", "./draft-here.txt"])
def test_a_file_that_lies_where_the_caller_stands_is_pointed_at(
    call: Caller, topic: str, tmp_path: Path, name: str
) -> None:
    page(call, topic, "```act.say\nCLI printf %s {text}\n  text: string (required)\n```\n")
    draft = tmp_path / "draft-here.txt"
    draft.write_text("from here", encoding="utf-8")
    assert call(topic, f"/act.say --text-file {name}", tmp_path).content == (
        f"ERROR(INVALID_PAYLOAD): --text-file: cannot read {name}: No such file or directory\n"
        f"It exists in {tmp_path}: use {draft}"
    )
    assert call(topic, f"/act.say --text-file {draft}", tmp_path).content == "from here"


def test_a_document_a_default_action_answers_is_shown_without_its_header(
    call: Caller, web: WebServer
) -> None:
    web.answer = Reply("---\ntitle: Hidden\n---\n# News\n", "text/markdown")
    action = f"```act.news\nGET {web.url}/news\n```\n"
    topic = app(call, web, f"default: news\n---\n# Paper\n{action}")
    assert call(topic, "/open").content.endswith("# Paper\n\n---\n\n# News")


def test_the_short_form_runs_an_action_of_the_page(call: Caller, topic: str) -> None:
    page(call, topic, "```act.hello\nCLI echo hi {name}\n  name: string\n```\n")
    assert call(topic, "/hello Ann").content == "hi Ann"
    assert call(topic, "/helo").content.startswith("ERROR(COMMAND_UNSUPPORTED)")


def test_a_trailing_line_break_is_no_part_of_a_value(call: Caller, topic: str) -> None:
    page(call, topic, "```act.say\nCLI printf '[%s]' {a} {b}\n  a: string\n  b: string\n```\n")
    assert call(topic, "/act.say x\n").content == "[x][{b}]"
    assert call(topic, "/act.say\n'two\nlines' y\n").content == "[two\nlines][y]"
    assert call(topic, "/act say x y").content == "[x][y]"


@proves("ACT-40")
def test_fifty_topics_act_at_the_same_time(call: Caller, web: WebServer) -> None:
    everyone = threading.Barrier(50)

    def answer(_asked: Asked) -> Reply:
        everyone.wait(WAIT_SECONDS)
        return Reply("{}")

    web.answer = answer
    (call.home / "many.md").write_text(f"```act.go\nGET {web.url}/x\n```\n", encoding="utf-8")

    def act(number: int) -> bool:
        call(f"file:many-{number}", "/open many.md")
        return call(f"file:many-{number}", "/act.go").ok

    with ThreadPoolExecutor(50) as pool:
        assert all(pool.map(act, range(50)))


def test_closing_a_topic_ends_the_command_it_runs(call: Caller, topic: str) -> None:
    page(call, topic, "```act.wait\nCLI echo $$ >pid; sleep 1000\n```\n")
    pid = call.home / "pid"
    os.mkfifo(pid)
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(call, topic, "/act.wait")
        pid.read_text(encoding="utf-8")
        call("file:main", f"/close {topic}")
        reply = running.result()
    pid.unlink()
    assert (reply.code, reply.content) == ("EXIT_1", "ERROR(EXIT_1): The command was ended.")
