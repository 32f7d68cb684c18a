"""A gate, a browser with an authenticator, and the person who uses both."""

import http.client
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tests.gate.support import QUESTION, RunningGate
from tests.support.browser import Browser
from tests.support.daemon import WAIT_SECONDS

ADDRESS = re.compile(r"http://localhost:(\d+)/register/[\w-]+")

UNTIL = """
const moment = () => new Promise((done) => setTimeout(done, 20));
const until = async (ready) => { while (!ready()) await moment(); };
const shown = (id) => document.getElementById(id);
"""
SIGN = """
const bytes = (text) => Uint8Array.from(
  atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
const text = (data) => btoa(String.fromCharCode(...new Uint8Array(data)))
  .replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
const made = await navigator.credentials.get({ publicKey: {
  challenge: bytes(challenge), rpId: "localhost", userVerification: verification,
  allowCredentials: ids.map((id) => ({ type: "public-key", id: bytes(id) })) } });
const { clientDataJSON, authenticatorData, signature } = made.response;
return { id: made.id, rawId: text(made.rawId), type: made.type, response: {
  clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData),
  signature: text(signature) } };
"""


@dataclass
class Person:
    """Somebody at the gate's terminal with a browser beside it."""

    gate: RunningGate
    browser: Browser
    port: int = 0
    device: str = ""

    @property
    def origin(self) -> str:
        return f"http://localhost:{self.port}"

    def plug_in(self, *credentials: dict[str, Any]) -> None:
        """Plug in an authenticator that knows its user, with these passkeys on it."""
        self.browser.ask("WebAuthn.enable")
        options = {
            "protocol": "ctap2",
            "transport": "internal",
            "hasResidentKey": True,
            "hasUserVerification": True,
            "isUserVerified": True,
            "automaticPresenceSimulation": True,
        }
        added = self.browser.ask("WebAuthn.addVirtualAuthenticator", options=options)
        self.device = str(added["authenticatorId"])
        for each in credentials:
            self.browser.ask("WebAuthn.addCredential", authenticatorId=self.device, credential=each)

    def unplug(self) -> list[dict[str, Any]]:
        """Take the authenticator away; what was on it."""
        on = self.browser.ask("WebAuthn.getCredentials", authenticatorId=self.device)
        self.browser.ask("WebAuthn.removeVirtualAuthenticator", authenticatorId=self.device)
        found: list[dict[str, Any]] = on["credentials"]
        return found

    def verify_user(self, verified: bool) -> None:
        """Let the authenticator recognise its user, or not."""
        self.browser.ask(
            "WebAuthn.setUserVerified", authenticatorId=self.device, isUserVerified=verified
        )

    def open_passkeys(self) -> None:
        self.gate.terminal.type("\r")
        self.gate.terminal.wait_for("p passkeys")
        self.gate.terminal.type("p")
        self.gate.terminal.wait_for("1-9 revoke one")

    def close_passkeys(self) -> None:
        self.gate.terminal.type("q")
        self.gate.terminal.wait_for("p passkeys")
        self.gate.terminal.type("q")

    def begin(self, name: str) -> str:
        """Ask for a new passkey at the terminal; where to make it."""
        terminal = self.gate.terminal
        terminal.type("a")
        terminal.wait_for("Name of the new passkey")
        terminal.type(f"{name}\r")
        terminal.wait_for("Open this in a browser")
        terminal.wait_for("s left   Esc")
        found = ADDRESS.findall(terminal.screen)
        self.port = int(found[-1])
        return [each.group() for each in ADDRESS.finditer(terminal.screen)][-1]

    def make(self, address: str) -> str:
        """Make it in the browser; the key as the page shows it."""
        self.browser.open(address)
        key: str = self.browser.run(
            UNTIL
            + "await until(() => shown('button').textContent); shown('button').click();"
            + "await until(() => shown('rows').textContent || shown('message').textContent);"
            + "return shown('rows').textContent || shown('message').textContent"
        )
        return key

    def register(self, name: str) -> None:
        """All of it."""
        self.open_passkeys()
        key = self.make(self.begin(name))
        assert key.startswith("SHA256:"), key
        self.gate.terminal.wait_for(key)
        self.gate.terminal.wait_for("Register this passkey?")
        self.gate.terminal.type("y")
        self.gate.terminal.wait_for(f"{name} may approve")
        self.close_passkeys()

    def question(self) -> dict[str, Any]:
        """The open question, as the gate gives it to its page."""
        self.gate.terminal.wait_for(QUESTION)
        status, found = self.http("GET", "/question?seen=")
        assert status == 200
        return found

    def look(self) -> str:
        """Open the page, and read what it asks about."""
        self.browser.open(f"{self.origin}/")
        text: str = self.browser.run(
            UNTIL
            + "await until(() => shown('rows').textContent && !shown('button').disabled);"
            + "return shown('rows').innerText"
        )
        return text

    def click(self) -> str:
        """Press the button of the page; what it says then."""
        said: str = self.browser.run(
            UNTIL
            + "shown('button').click(); await until(() => shown('button').disabled);"
            + "await until(() => !shown('message').textContent.endsWith('…'));"
            + "return shown('message').textContent"
        )
        return said

    def sign(self, question: Mapping[str, Any], verification: str = "required") -> dict[str, Any]:
        """An assertion for a challenge, made by the page that is open in the browser."""
        signed: dict[str, Any] = self.browser.run(
            SIGN,
            challenge=question["challenge"],
            ids=question["credentials"],
            verification=verification,
        )
        return signed

    def approve(self, number: str, credential: object) -> tuple[int, dict[str, Any]]:
        return self.http("POST", "/approve", {"number": number, "credential": credential})

    def http(
        self, method: str, path: str, body: object = None, **headers: str
    ) -> tuple[int, dict[str, Any]]:
        """What any program of this account can send."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_SECONDS)
        sent = {"Host": f"localhost:{self.port}"}
        if body is not None:
            sent |= {"Origin": self.origin, "Content-Type": "application/json"}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        try:
            connection.request(method, path, None if body is None else json.dumps(body), sent)
            answer = connection.getresponse()
            data = answer.read()
            found = json.loads(data) if data.startswith(b"{") else {"headers": dict(answer.headers)}
            return answer.status, found
        finally:
            connection.close()
