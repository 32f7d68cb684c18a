"""Passkeys with a real browser, its virtual authenticator, and a real gate on a terminal."""

import errno
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from stringd.gate.passkeys.passkey import Passkey, decode_passkeys, encode_passkeys
from stringd.gate.settings import PASSKEYS_FILE
from tests.gate.passkeys.support import Person
from tests.gate.support import QUESTION, Terminal, answer, request, running_gate
from tests.requirements import proves
from tests.support.browser import PROGRAM, running_browser
from tests.support.daemon import WAIT_SECONDS

pytestmark = pytest.mark.skipif(PROGRAM is None, reason="Chromium is not installed")


@pytest.fixture(scope="module")
def person(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Person]:
    """Somebody with the passkey `laptop`."""
    with (
        running_gate(tmp_path_factory.mktemp("g"), size=(40, 120)) as gate,
        running_browser(tmp_path_factory.mktemp("browser")) as browser,
    ):
        somebody = Person(gate, browser)
        somebody.plug_in()
        somebody.register("laptop")
        yield somebody


@proves("GATE-KEY-01", "GATE-KEY-05")
def test_the_right_person_reads_the_command_and_it_runs(person: Person) -> None:
    with person.gate.ask(request(["echo", "by passkey"], reason="try it")) as waiting:
        person.gate.terminal.wait_for("or by passkey at http://localhost:")
        shown = person.look()
        assert "Command: echo 'by passkey'" in shown
        assert "Resolves:" in shown
        assert "try it" in shown
        assert person.click() == "Approved by the passkey laptop."
        reply = answer(waiting)
    assert (reply["status"], reply["decided_by"]) == ("ok", "passkey:laptop")
    person.gate.terminal.wait_for("by the passkey laptop")
    records = [each for each in person.gate.audit() if each.get("id") == reply["id"]]
    assert [each["event"] for each in records] == ["received", "decided", "finished"]
    assert records[0]["page"] == f"{person.origin}/"
    assert (records[1]["decision"], records[1]["by"]) == ("approved", "passkey:laptop")


@proves("GATE-KEY-01")
def test_a_permission_of_an_agent_can_be_allowed_with_it(person: Person) -> None:
    asked = request(action="decide", tool="Bash", text="make publish", pipeline=None)
    with person.gate.ask(asked) as waiting:
        person.gate.terminal.wait_for("Allow?")
        assert "make publish" in person.look()
        person.click()
        reply = answer(waiting)
    assert (reply["status"], reply["message"]) == ("ok", "allowed")
    assert reply["decided_by"] == "passkey:laptop"


def refused(person: Person, number: str, credential: object, why: str) -> None:
    """The answer does not count, the question stays open, and the log says so."""
    status, said = person.approve(number, credential)
    assert status == 409, said
    assert why in said["error"], said
    assert person.gate.audit()[-1]["event"] == "passkey_refused"
    assert person.http("GET", "/question?seen=")[1]["number"] == number


@proves("GATE-KEY-02")
def test_somebody_whom_the_authenticator_did_not_verify_is_refused(person: Person) -> None:
    with person.gate.ask(request(["echo", "unverified"])) as waiting:
        question = person.question()
        person.browser.open(f"{person.origin}/")
        # A script may ask its browser for less than our page does.
        refused(person, question["number"], person.sign(question, "discouraged"), "verif")
        person.verify_user(False)
        person.look()
        assert "did not get a passkey" in person.click()
        person.verify_user(True)
        person.gate.terminal.type("x")
        assert answer(waiting)["status"] == "denied"


@proves("GATE-KEY-03")
def test_what_was_signed_for_another_origin_is_refused(person: Person, tmp_path: Path) -> None:
    with (
        person.gate.ask(request(["echo", "elsewhere"])) as waiting,
        page_elsewhere(tmp_path) as port,
    ):
        question = person.question()
        person.browser.open(f"http://localhost:{port}/")
        refused(person, question["number"], person.sign(question), "origin")
        person.gate.terminal.type("x")
        assert answer(waiting)["status"] == "denied"


@contextmanager
def page_elsewhere(folder: Path) -> Iterator[int]:
    """A page of another program of this machine, which browsers take for the same site."""
    serve = [sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1"]
    with subprocess.Popen(
        serve, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as server:
        assert server.stdout is not None
        yield int(server.stdout.readline().split("port ")[1].split()[0])
        server.kill()


@proves("GATE-KEY-04")
def test_an_answer_counts_once_and_for_its_own_command_only(person: Person) -> None:
    with person.gate.ask(request(["echo", "one"])) as waiting:
        first = person.question()
        person.browser.open(f"{person.origin}/")
        signed = person.sign(first)
        assert person.approve(first["number"], signed)[0] == 200
        assert answer(waiting)["decided_by"] == "passkey:laptop"
    for words in (["echo", "one"], ["echo", "two"]):
        with person.gate.ask(request(words)) as waiting:
            second = person.question()
            refused(person, second["number"], signed, "challenge")
            status, said = person.approve(first["number"], signed)
            assert (status, "no longer open" in said["error"]) == (409, True)
            person.gate.terminal.type("x")
            assert answer(waiting)["status"] == "denied"


@proves("GATE-KEY-06")
def test_the_first_answer_wins(person: Person) -> None:
    with person.gate.ask(request(["echo", "raced"])) as waiting:
        question = person.question()
        person.browser.open(f"{person.origin}/")
        signed = person.sign(question)
        person.gate.terminal.type("x")
        assert answer(waiting)["status"] == "denied"
    status, said = person.approve(question["number"], signed)
    assert (status, "no longer open" in said["error"]) == (409, True)


@proves("GATE-KEY-07")
def test_a_page_at_an_address_is_led_to_the_name(person: Person) -> None:
    status, said = person.http("GET", "/", Host=f"127.0.0.1:{person.port}")
    assert (status, said["headers"]["Location"]) == (307, f"{person.origin}/")
    status, said = person.http("POST", "/approve", {}, Host=f"127.0.0.1:{person.port}")
    assert (status, "open http://localhost" in said["error"]) == (403, True)


@proves("GATE-KEY-07")
@pytest.mark.parametrize(
    ("method", "headers"),
    [
        ("POST", {"Origin": "http://localhost:1"}),
        ("POST", {"Origin": "null"}),
        ("POST", {"Content_Type": "text/plain"}),
        ("POST", {"Sec_Fetch_Site": "same-site"}),
        ("POST", {"Host": "evil.example"}),
        ("GET", {"Sec_Fetch_Site": "cross-site"}),
    ],
)
def test_other_pages_are_refused(person: Person, method: str, headers: dict[str, str]) -> None:
    body = {"number": "1", "credential": {}} if method == "POST" else None
    status, _ = person.http(method, "/approve" if body else "/question?seen=", body, **headers)
    assert status in (403, 415)


@proves("GATE-KEY-07")
def test_nobody_else_can_serve_pages_under_its_name(person: Person) -> None:
    families = {socket.AF_INET: "127.0.0.1", socket.AF_INET6: "::1"}
    for family, address in families.items():
        with socket.socket(family) as other:
            with pytest.raises(OSError) as refused:
                other.bind((address, person.port))
            # EADDRNOTAVAIL and EAFNOSUPPORT: a machine without IPv6 has one address.
            assert refused.value.errno in (
                errno.EADDRINUSE,
                errno.EADDRNOTAVAIL,
                errno.EAFNOSUPPORT,
            )


@proves("GATE-KEY-07")
@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another account")
def test_other_accounts_of_this_machine_see_nothing(person: Person) -> None:
    asks = f"GET /question?seen=nothing HTTP/1.0\\r\\nHost: localhost:{person.port}\\r\\n\\r\\n"
    script = f"exec 3<>/dev/tcp/127.0.0.1/{person.port}; printf '{asks}' >&3; cat <&3"
    for other, status in (("65534", " 403 "), ("0", " 200 ")):
        become = ["setpriv", "--reuid", other, "--clear-groups", "bash", "-c", script]
        said = subprocess.run(become, capture_output=True, text=True, timeout=WAIT_SECONDS)
        assert status in said.stdout.partition("\n")[0], said


@proves("GATE-KEY-08")
def test_a_revoked_passkey_is_refused_and_the_others_still_count(person: Person) -> None:
    laptop = person.unplug()
    person.plug_in()
    person.register("key.2")
    second = person.unplug()
    with person.gate.ask(request(["echo", "soon revoked"])) as waiting:
        question = person.question()
        assert len(question["credentials"]) == 2
        person.gate.terminal.type("x")
        answer(waiting)
    person.open_passkeys()
    person.gate.terminal.type("1")
    person.gate.terminal.wait_for("Revoke laptop? [y/N]")
    person.gate.terminal.type("y")
    person.gate.terminal.wait_for("laptop is revoked.")
    person.close_passkeys()
    assert person.gate.audit()[-1]["event"] == "passkey_revoked"
    with person.gate.ask(request(["echo", "revoked"])) as waiting:
        now = person.question()
        person.browser.open(f"{person.origin}/")
        person.plug_in(*laptop)
        signed = person.sign({**now, "credentials": question["credentials"][:1]})
        refused(person, now["number"], signed, "not registered")
        person.unplug()
        person.plug_in(*second)
        signed = person.sign(now)
        assert person.approve(now["number"], signed)[0] == 200
        assert answer(waiting)["decided_by"] == "passkey:key.2"


@proves("GATE-KEY-01", "GATE-KEY-09")
def test_nothing_is_registered_without_a_key_and_nothing_listens(home: Path) -> None:
    with running_gate(home) as gate, running_browser(home / "browser") as browser:
        person = Person(gate, browser)
        person.plug_in()
        person.open_passkeys()
        person.make(person.begin("laptop"))
        gate.terminal.wait_for("Register this passkey?")
        gate.terminal.type("n")
        gate.terminal.wait_for("laptop was not registered.")
        person.close_passkeys()
        with pytest.raises(ConnectionRefusedError):
            person.http("GET", "/")
        assert not (gate.data_dir / PASSKEYS_FILE).exists()
        with gate.ask(request(["true"])) as waiting:
            gate.terminal.wait_for(QUESTION)
            assert "by passkey" not in gate.terminal.seen().text
            gate.terminal.type("y")
            assert answer(waiting)["decided_by"] == "terminal"


@proves("GATE-KEY-09")
def test_what_a_program_wrote_to_the_file_counts_only_when_the_person_accepts_it(
    home: Path,
) -> None:
    planted = Passkey("laptop", b"id", b"key", added="2026-01-01")
    (home / "data").mkdir()
    path = home / "data" / PASSKEYS_FILE
    path.write_bytes(encode_passkeys([planted]))

    def press(key: str) -> Callable[[Terminal], None]:
        def at_start(terminal: Terminal) -> None:
            terminal.wait_for(planted.fingerprint)
            terminal.wait_for("Let these passkeys approve until this gate ends? [y/N]")
            terminal.type(key)

        return at_start

    with running_gate(home, at_start=press("n")) as gate:
        assert "By passkey" not in gate.terminal.screen
        assert "passkeys" not in {each["event"] for each in gate.audit()}
    with running_gate(home, at_start=press("y")) as gate:
        assert "By passkey   http://localhost:" in gate.terminal.screen
        record = next(each for each in gate.audit() if each["event"] == "passkeys")
        assert record["passkeys"] == [{"name": "laptop", "key": planted.fingerprint}]
    assert decode_passkeys(path.read_bytes()) == (planted,)
