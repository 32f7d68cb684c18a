"""What real apps, the cookbook and the official client ran into, by the number of the finding."""

import os
import select
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from tests.support.daemon import WAIT_SECONDS, Daemon
from tests.support.http import request
from tests.support.person import Person
from tests.support.web import Asked, Reply, WebServer

_numbers = count(1)
APP = "---\ntype: app\nname: {name}\n{more}---\n# App\n\n{body}"


@pytest.fixture
def person(daemon: Daemon, tmp_path: Path) -> Person:
    return Person(daemon.port, f"finder-{next(_numbers)}", tmp_path / "home")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Where the program is that calls."""
    path = tmp_path / "project"
    path.mkdir()
    return path


def install(person: Person, body: str, name: str = "tried", more: str = "") -> str:
    """Install an app of one page; its topic."""
    person.put(f"src-{name}/string.md", APP.format(name=name, more=more, body=body))
    person.gets(f"/install ~/src-{name}")
    return f"app:{name}"


@pytest.mark.parametrize("way", ["setsid sh -c", "nohup sh -c", "sh -c"])
def test_d1_a_detached_job_lives_on(person: Person, tmp_path: Path, way: str) -> None:
    alive, go = tmp_path / "alive", tmp_path / "go"
    os.mkfifo(alive)
    os.mkfifo(go)
    job = f"{way} 'exec 3>{alive}; echo up >&3; read line <{go}; echo done >&3'"
    topic = install(person, f"```act.s\nCLI {job} </dev/null >/dev/null 2>&1 & echo started\n```\n")
    held = os.open(alive, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert person.gets("/act.s", topic) == "started"
        assert _read(held) == b"up\n"
        # For reading too: opening must not wait for a job that has ended.
        ends = os.open(go, os.O_RDWR)
        os.write(ends, b"end\n")
        assert _read(held) == b"done\n"
        os.close(ends)
    finally:
        os.close(held)


def _read(pipe: int) -> bytes:
    assert select.select([pipe], [], [], WAIT_SECONDS)[0], "the job says nothing"
    return os.read(pipe, 100)


def test_d2_what_a_command_makes_is_in_the_apps_data_and_named(
    person: Person, project: Path
) -> None:
    person.put("src-tried/pages/more.md", "# More\n")
    topic = install(person, "```act.make\nCLI echo kept > out.txt && echo made\n```\n")
    made = person.home / ".string-work/tried/out.txt"
    assert person.gets("/act.make", topic, project) == f"made\n\nSaved: {made}"
    assert made.read_text() == "kept\n"
    assert person.gets("/act.make", topic, project) == "made"
    person.gets("/uninstall tried")
    assert made.read_text() == "kept\n"


def test_d2_a_package_with_helpers_runs_beside_them_and_loses_nothing(person: Person) -> None:
    person.put("src-tried/run.sh", "#!/bin/sh\necho $1 > made.txt\n")
    person.put("src-tried/data.json", "{}")
    body = "```act.make\nCLI sh ./run.sh {text} && echo 1 > data.json\n  text: string\n```\n"
    topic = install(person, body)
    package = person.home / "packages/tried"
    person.gets("/act.make first", topic)
    assert (package / "made.txt").read_text() == "first\n"

    again = person.gets("/install ~/src-tried")
    assert "Carried over: 1 file that its actions made" in again
    aside = Path(again.partition("changed, in ")[2])
    assert (package / "made.txt").read_text() == "first\n"
    assert (package / "data.json").read_text() == "{}"
    assert (aside / "data.json").read_text() == "1\n"

    gone = person.gets("/uninstall tried")
    kept = Path(gone.partition("its actions made, in ")[2].partition("\n")[0])
    assert (kept / "made.txt").read_text() == "first\n"
    assert not package.exists()


def test_d2_what_is_carried_over_is_not_part_of_the_app(person: Person) -> None:
    body = "```act.make\nCLI ls string.md; cp string.md second.md\n```\n"
    topic = install(person, body)
    person.gets("/act.make", topic)
    person.gets("/install ~/src-tried")
    person.gets(f"/open {person.home}/packages/tried/second.md", "file:second")
    assert "not part of app:tried" in person.fails("/act.make", "file:second").text


def test_d2_what_a_template_saves_is_named(person: Person, project: Path) -> None:
    with WebServer(Reply('{"x": "text"}')) as web:
        body = f"```act.get\nGET {web.url}/\n```\n```act.get.response\nsave: x\nto: x.txt\n```\n"
        topic = install(person, body, more=f'hosts: ["{web.host}"]\n')
        assert person.gets("/act.get", topic, project) == f"Saved: {project}/x.txt"


def test_d3_help_shows_the_call(person: Person) -> None:
    person.put("p.md", '```act.s\nGET http://h.test/\n  q, -q: string (required) "What"\n```\n')
    person.gets("/open p.md")
    assert person.gets("/act.s --help") == (
        "Action: s\n---\n/act.s\n   -q, --q <string> (required) — What"
    )


ECHO = (
    "```act.e\nCLI printf '%s|' {x} {y}\n  x: string (dash: true)\n  y: string (dash: true)\n```\n"
)


@pytest.mark.parametrize(
    ("arguments", "printed"),
    [
        ('--x "--limit 50" b', "--limit 50|b|"),
        ('--x "-v" b', "-v|b|"),
        ('--x "" b', "|b|"),
        ('"--x y" b', "--x y|b|"),
        (r'"a \"q\" b" "c\\d"', 'a "q" b|c\\d|'),
        ("-- -v '$HOME'", "-v|$HOME|"),
        (r'"\$HOME" "cost \$5"', r"$HOME|cost \$5|"),
        ('["x", "y z"] \'it"s\'', '["x", "y z"]|it"s|'),
    ],
)
def test_d4_d8_u20_quotes_make_values(person: Person, arguments: str, printed: str) -> None:
    person.put("p.md", ECHO)
    person.gets("/open p.md")
    assert person.gets(f"/act.e {arguments}") == printed


def test_d5_a_command_is_not_run_without_what_it_requires(person: Person) -> None:
    body = "```act.go\nCLI echo ran\n```\n"
    topic = install(person, body, more="requires: [SHOP_KEY, REGION]\n")
    person.gets('/set $REGION = "eu"', topic)
    refused = person.fails("/act.go", topic)
    assert refused.code == "AUTH_REQUIRED"
    assert refused.message == (
        'Missing required env: $SHOP_KEY\n\nSet it from this app session:\n  /set $SHOP_KEY = "..."'
    )
    person.gets('/set $SHOP_KEY = "k"', topic)
    assert person.gets("/act.go", topic) == "ran"


def test_d6_an_app_with_its_configuration_opens_in_its_topic(person: Person) -> None:
    body = '```act.now\nCLI echo {city}\n  city: string = "$CITY"\n```\n'
    topic = install(person, body)
    person.gets('/set $CITY = "Seoul"', f"{topic}:seoul")
    opened = person.gets(f"/open {topic}:seoul")
    assert "\nTopic: app:tried:seoul\n---\n" in opened
    assert "Seoul" in person.gets("/act.now", "app:tried:seoul")
    assert "(none open)" in person.gets("/info")
    assert person.gets("/open bash:dev") == "Opened bash:dev\nTopic: bash:dev"
    assert "bash:dev" in person.sessions()
    assert person.fails("/open app:none:x").code == "NOT_FOUND"
    assert "app:none:x" not in person.sessions()


def test_d7_a_page_of_the_web_opens_in_a_web_topic(person: Person) -> None:
    person.put("note.md", "# Note\n")
    with WebServer(Reply("# Page", "text/markdown")) as web:
        assert "Topic: web:acme" in person.gets(f"/open --tab acme {web.url}/")
    assert "Topic: file:note" in person.gets("/open --tab note note.md")


def test_d9_a_command_may_go_on_until_its_quote_closes(person: Person) -> None:
    body = (
        "```act.py\nCLI python3 -c 'import sys\nfor word in sys.argv[1:]:\n"
        "    print(word)' {a}\n  a: string (required) \"it's said\"\n```\n"
    )
    person.put("p.md", body)
    person.gets("/open p.md")
    assert person.gets("/act.py hello") == "hello"


def test_d10_header_lines_are_headers(person: Person) -> None:
    with WebServer(Reply("ok", "text/plain")) as web:
        person.put(
            "p.md",
            f"```act.a\nGET {web.url}/\nAuthorization: Bearer $T\n  X-Two: {{q}}\n"
            "  Tenant: $T\n  q: string\n```\n",
        )
        person.gets('/set $T = "abc"')
        person.gets("/open p.md")
        person.gets("/act.a --q z")
        sent = web.last.headers
    assert (sent["authorization"], sent["x-two"], sent["tenant"]) == ("Bearer abc", "z", "abc")


def test_d11_info_of_an_app_says_nothing_of_its_files(person: Person) -> None:
    topic = install(person, "Text.\n")
    person.gets("/open", topic)
    said = person.gets("/info", topic)
    assert "app:       tried" in said
    assert "file:" not in said
    assert "cwd:" not in said


@pytest.mark.parametrize("way", ["source", "path"])
def test_d12_an_included_block_is_edited_where_it_is(person: Person, way: str) -> None:
    if way == "source":
        person.put("doc.md", "# Doc\n\n[!include:part]()\n")
        source = person.put("doc.md.source/part.md", "old\n")
    else:
        person.put("doc.md", "# Doc\n\n[!include:part](parts/all.md)\n")
        text = "<!-- #part -->\nold\n<!-- /part -->\n"
        source = person.put("parts/all.md", f"before\n{text}after\n")
    assert "old" in person.gets("/edit doc.md#part")
    assert "old" in person.gets("/verify doc.md#part")
    assert person.gets("/edit doc.md#part\nnew").startswith("Edited doc.md#part (")
    assert "new" in source.read_text()
    assert "old" not in source.read_text()
    assert "new" in person.gets("/open doc.md#part")
    assert "(in " in person.chanflow("<𝒞=string:file:main>/edit doc.md#part\nnewer</𝒞>")


def test_d12_a_block_from_outside_is_not_edited_by_way_of_a_document(person: Person) -> None:
    person.put("a/doc.md", "[!include:part](../b/all.md)\n")
    held = person.put("b/all.md", "<!-- #part -->\nold\n<!-- /part -->\n")
    refused = person.fails("/edit a/doc.md#part\nnew")
    assert "Recovery: /edit b/all.md#part" in refused.text
    assert "old" in held.read_text()


def test_d13_lists_have_a_length_and_missing_paths_are_said(person: Person) -> None:
    with WebServer(Reply('[{"a": 1}, {"a": 2}]')) as web:
        template = "{n} = {Response.body.length}\n{m} = {Response.body.nope}\n{n} found"
        person.put("p.md", f"```act.l\nGET {web.url}/\n```\n```act.l.response\n{template}\n```\n")
        person.gets("/open p.md")
        said = person.gets("/act.l")
    assert said.startswith("2 found\n\n> ⚠️ Unresolved template reference: {Response.body.nope}\n")
    assert said.endswith("Assigned as empty text.")


def test_d14_settings_stay_readable_and_secrets_do_not(person: Person) -> None:
    assert person.gets('/set $CITY = "Springfield"') == '$CITY = "Springfield" (global)'
    assert person.gets('/set $API_KEY = "sk-123456"') == '$API_KEY = "sk-…" (global)'
    assert person.gets('/set $DB = "pg://me:word@h/x"') == '$DB = "pg:…" (global)'
    assert '$CITY = "Springfield"\n' in person.gets("/set")
    assert person.gets("/set $CITY") == '$CITY = "Springfield"'
    assert person.gets("/set $API_KEY") == '$API_KEY = "sk-…"'
    assert person.fails("/set $NOTHING").message.startswith("Invalid assignment: $NOTHING")


def test_d15_u16_unknown_flags_are_refused(person: Person) -> None:
    with WebServer(Reply("ok", "text/plain")) as web:
        person.put("p.md", f"```act.g\nGET {web.url}/\n  id: string (required)\n```\n")
        person.gets("/open p.md")
        refused = person.fails("/act.g --idd 3")
        assert not web.asked
    assert refused.text == (
        "ERROR(INVALID_PAYLOAD): Unknown flag: --idd. Did you mean --id?\n\n"
        "Usage:\n  --id <string> (required)"
    )


def test_d16_placing_the_cursor_at_the_start_of_a_line_adds_none(person: Person) -> None:
    said = person.gets(r"printf 'a\n\033[2;1Hb\033[3;1Hc\n'", "bash:d16")
    assert said.partition("\n---\n")[2] == "a\nb\nc"


def test_d17_a_bare_attribute_is_ignored(person: Person) -> None:
    said = person.chanflow("<𝒞=string:file:x z a=b>/topics</𝒞>")
    assert "✗" not in said
    assert "file:x" in said


def test_d18_topics_are_counted_in_words(person: Person) -> None:
    assert person.gets("/topics").endswith("\n1 topic open.")
    person.gets("/info", "file:b")
    assert person.gets("/topics").endswith("\n2 topics open.")
    assert person.gets("/topics file").endswith("\n2 file topics open.")


def test_d19_editing_a_missing_block_names_those_there_are(person: Person) -> None:
    person.put("doc.md", "# My title\n\n<!-- #goals -->\nx\n<!-- /goals -->\n")
    for command in ("/edit doc.md#nope", "/edit doc.md#nope\ntext", "/verify doc.md#nope"):
        assert "Available blocks: goals, my-title" in person.fails(command).text


def test_d20_a_user_of_later_clients_needs_no_home(daemon: Daemon, person: Person) -> None:
    def post(**fields: str) -> tuple[int, object]:
        answer = request(daemon.port, "POST", "/users", fields)
        return answer.status, answer.json

    name = f"later-{person.id}"
    home = f"{daemon.directory}/.string/users/{name}"
    assert post(user_id=name) == (200, {"user_id": name, "home": home, "created": True})
    assert post(user_id=name) == (200, {"user_id": name, "home": home, "created": False})
    assert post(user_id=person.id)[1] == {
        "user_id": person.id,
        "home": str(person.home),
        "created": False,
    }
    assert post(id=name) == (400, {"error": "home required"})
    assert post(user_id="x" * 300)[0] == 400


def test_users_are_agents_to_later_clients(daemon: Daemon, person: Person) -> None:
    def ask(method: str, path: str, body: object = None, agent: str = "") -> Any:
        headers = {"X-Agent-Id": agent} if agent else None
        answer = request(daemon.port, method, path, body, headers)
        assert answer.status == 200, answer
        return answer

    name = f"agent-{person.id}"
    home = f"{daemon.directory}/.string/users/{name}"
    made = ask("POST", "/agents", {"agent_id": name}).json
    assert made == {"agent_id": name, "home": home, "created": True}
    assert name in [each["id"] for each in ask("GET", "/agents").json["agents"]]
    ran = ask("POST", "/exec", {"cmd": "/info", "topic": "file:a"}, agent=name)
    assert ran.events[0][1]["user_id"] == name
    listed = ask("GET", f"/sessions?agent_id={name}").json["sessions"]
    assert [each["topic"] for each in listed] == ["file:a"]
    health = ask("GET", "/health").json
    assert health["agents"] == health["users"]
    gone = ask("DELETE", f"/agents/{name}").json
    assert gone == {"agent_id": name, "deleted": True}


def test_the_daemon_describes_itself(daemon: Daemon) -> None:
    said = request(daemon.port, "GET", "/describe").json
    assert said["name"] == "stringd"
    assert said["capabilities"]["exec"] == {"max_request_body_bytes": 10 * 1024 * 1024}
    for endpoint in said["endpoints"]:
        method, path = endpoint.split()
        if ":" not in path and path not in ("/shutdown", "/ws", "/mcp", "/events"):
            body = b"{}" if method == "POST" else None
            assert request(daemon.port, method, path, body).status in (200, 400)


@pytest.mark.parametrize(
    ("reply", "code", "said"),
    [
        (Reply('{"why": "no stock"}', status=409), "LOAD_ERROR", "409: no stock (buy tea)"),
        (Reply('{"why": "gone"}', status=404), "NOT_FOUND", "404: gone (buy tea)"),
    ],
)
def test_the_error_fence_is_what_a_failed_call_says(
    person: Person, reply: Reply, code: str, said: str
) -> None:
    with WebServer(reply) as web:
        person.put(
            "p.md",
            f"Text.\n\n```act.buy\nGET {web.url}/\n  what: string\n```\n"
            "```act.buy.error\n{Response.status}: {Response.body.why} (buy {what})\n```\n",
        )
        assert "Response" not in person.gets("/open p.md")
        failed = person.fails("/act.buy tea")
    assert (failed.code, failed.message) == (code, said)


def test_the_error_fence_of_a_command(person: Person) -> None:
    person.put(
        "p.md",
        "```act.c\nCLI echo broken; exit 3\n```\n"
        "```act.c.error\n{Response.code} {Response.exit_code}: {Response.body}\n```\n",
    )
    person.gets("/open p.md")
    failed = person.fails("/act.c")
    assert (failed.code, failed.message) == ("EXIT_3", "EXIT_3 3: broken")


def test_u19_a_command_knows_where_its_caller_is(person: Person, project: Path) -> None:
    (project / "notes.txt").write_text("one\ntwo\n")
    body = (
        "```act.count\nCLI wc -l < {file}\n  file: path (required)\n```\n"
        "```act.where\nCLI echo $STRING_CALLER_DIR\n```\n"
    )
    topic = install(person, body)
    for name in ("notes.txt", "./notes.txt", f"{project}/notes.txt"):
        assert person.gets(f"/act.count {name}", topic, project).strip() == "2"
    assert person.gets("/act.where", topic, project) == str(project)


def test_an_edit_shows_what_changed_where_that_is_asked_for(daemon: Daemon, person: Person) -> None:
    def write(text: str, **fields: object) -> str:
        answer = person.post(cmd=f"/write a.md\n{text}", topic="file:main", **fields)
        content: str = answer.events[1][1]
        return content.partition("\n")[2]

    def choose(**fields: bool) -> None:
        body = {"id": person.id, "home": str(person.home), **fields}
        assert request(daemon.port, "POST", "/users", body).status == 200

    short = "Written: a.md (3 bytes, 1 lines)"
    assert write("one") == short
    assert write("two", diff=True) == f"{short}\n---\n1 -│ one\n1 +│ two"
    choose(diffs=True)
    assert write("six") == f"{short}\n---\n1 -│ two\n1 +│ six"
    assert write("ten", diff=False) == short
    choose()
    assert "---" in write("one")
    choose(diffs=False)
    assert write("two") == short
    assert person.post(cmd="/info", diff="yes").json == {"error": "diff must be true or false"}


def test_files_nobody_read_are_spared_where_that_is_asked_for(
    daemon: Daemon, person: Person
) -> None:
    person.put("a.md", "old\n")
    person.put("b.md", "old\n")
    body = {"id": person.id, "home": str(person.home), "overwrite_guard": True}
    assert request(daemon.port, "POST", "/users", body).status == 200
    for command in ("/write a.md\nnew", "/edit a.md\nnew"):
        assert person.fails(command).code == "CONFLICT"
    assert person.read("a.md") == b"old\n"
    person.gets("/edit a.md")
    person.gets("/write a.md\nnew")
    person.gets("/write b.md --force\nnew")
    person.gets("/write c.md\nnew")
    person.gets("/append b.md\nmore", "file:other")


def test_a_program_leaves_an_event_in_a_topic(daemon: Daemon, person: Person) -> None:
    asked = f"/users/{person.id}/webhook?topic=file:ci"
    made = request(daemon.port, "GET", asked).json
    assert made == {**request(daemon.port, "GET", asked).json, "topic": "file:ci"}
    path = made["webhook_url"].removeprefix(f"http://127.0.0.1:{daemon.port}")

    sent = request(daemon.port, "POST", path, b"build 7 failed\nlog: /act.x", {})
    assert sent.status == 202
    ident = sent.json["event_id"]
    assert "events:    1 pending (/events)" in person.gets("/info", "file:ci")
    assert "events:" not in person.gets("/info")
    listed = person.gets("/events", "file:ci")
    assert listed.startswith(f"Events\n---\n## Pending events (1)\n  {ident}  pending  ")
    assert "  build 7 failed\n" in listed
    assert "  build 7 failed  [file:ci]\n" in person.gets("/events")
    read = person.gets(f"/events.read {ident}")
    assert "\n\nbuild 7 failed\nlog: /act.x\n\nnext: /events.ack" in read
    assert person.gets(f"/events.ack {ident}") == f"Acked {ident}"
    assert "(0)" in person.gets("/events list")
    assert f"{ident}  ack" in person.gets("/events --all")
    assert person.gets("/events.clear") == "Cleared 1 event"
    assert person.fails("/events.read evt_none").code == "NOT_FOUND"


def test_only_an_address_that_was_given_out_takes_events(daemon: Daemon, person: Person) -> None:
    def post(path: str, body: bytes) -> tuple[int, Any]:
        answer = request(daemon.port, "POST", path, body, {})
        return answer.status, answer.json

    first = request(daemon.port, "GET", f"/agents/{person.id}/webhook").json
    assert (first["agent_id"], first["topic"]) == (person.id, "file:main")
    second = request(daemon.port, "POST", f"/agents/{person.id}/webhook").json
    old, new = (f"/webhook/{each['webhook_url'].rpartition('/')[2]}" for each in (first, second))
    assert post(old, b"x") == (401, {"error": "Unknown webhook token"})
    assert post(new, b" \n") == (400, {"error": "Webhook body must be non-empty text"})
    assert post(new, b"x" * 65537) == (413, {"error": "Webhook body exceeds 65536 bytes"})
    assert request(daemon.port, "GET", "/users/nobody/webhook").status == 404
    foreign = request(daemon.port, "POST", new, b"x", {"Origin": "https://evil.example"})
    assert foreign.status == 403
    assert post(new, b"x")[0] == 202
    request(daemon.port, "DELETE", f"/users/{person.id}")
    assert post(new, b"x")[0] == 401


def test_a_web_topic_keeps_the_cookies_of_its_sites(person: Person) -> None:
    def answer(asked: Asked) -> Reply:
        if asked.target == "/login":
            sets = (("Set-Cookie", "sid=abc; Path=/; HttpOnly"), ("Set-Cookie", "deep=1; Path=/x"))
            return Reply("", status=302, headers=(*sets, ("Location", "/page")))
        text = f"# {asked.headers.get('cookie', 'none')}\n\n```act.who\nGET /me\n```\n"
        kind = "text/markdown" if asked.target == "/page" else "text/plain"
        return Reply(text, kind)

    with WebServer(answer) as web, WebServer(answer) as other:
        assert "# sid=abc" in person.gets(f"/open {web.url}/login", "web:a")
        assert "# sid=abc" in person.gets("/act.who", "web:a")
        assert "# sid=abc" in person.gets(f"/open --tab web:c {web.url}/page", "web:a")
        assert "# none" in person.gets(f"/open {other.url}/page", "web:a")
        assert "# none" in person.gets(f"/open {web.url}/page", "web:b")
        assert "# none" in person.gets(f"/open {web.url}/login", "file:plain")
        person.gets("/close", "web:a")
        assert "# none" in person.gets(f"/open {web.url}/page", "web:a")
