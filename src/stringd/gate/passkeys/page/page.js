/** The gate's question in a browser: read it, then approve it with a passkey. Nothing here decides; the gate checks. */

// A question that has just replaced another one is not approved by the click that was meant for that.
const READING_MS = 1000;

/** @param {string} id */
const find = (id) => /** @type {HTMLElement} */ (document.getElementById(id));
const button = /** @type {HTMLButtonElement} */ (find("button"));
const token = location.pathname.startsWith("/register/") ? location.pathname.slice("/register/".length) : "";

/** @param {string} text */
const bytes = (text) => Uint8Array.from(atob(text.replaceAll("-", "+").replaceAll("_", "/")), (each) => each.charCodeAt(0));
/** @param {ArrayBuffer} data */
const text = (data) => btoa(String.fromCharCode(...new Uint8Array(data))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");

/** @param {string} said @param {boolean} [bad] */
function say(said, bad = false) {
  find("message").textContent = said;
  find("message").classList.toggle("bad", bad);
}

/** @param {unknown} error */
function reason(error) {
  if (error instanceof DOMException && ["NotAllowedError", "AbortError"].includes(error.name))
    return "The browser did not get a passkey: it was cancelled, took too long, or is not on this machine.";
  return error instanceof Error ? error.message : String(error);
}

/** @param {string} path @param {object} [body] */
async function ask(path, body) {
  const sent = body && { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) };
  let answer;
  try {
    answer = await fetch(path, sent);
  } catch {
    throw new Error("The gate does not answer: it may have ended.");
  }
  const said = await answer.json();
  if (!answer.ok) throw new Error(said.error);
  return said;
}

/** @param {string[][][]} rows */
function show(rows) {
  find("rows").replaceChildren(...rows.map((row) => {
    const line = document.createElement("div");
    line.append(...row.map(([piece, style]) => Object.assign(document.createElement("span"), { textContent: piece, className: style })));
    return line;
  }));
}

/** @param {boolean} open */
function unfold(open) {
  for (const id of ["rows", "deed"]) find(id).hidden = !open;
  find("note").hidden = true;
}

/** The question on this page, if there is one. @type {any} */
let asked = null;
let busy = false;
let until = 0;
let readable = 0;

function tick() {
  const seconds = Math.max(0, Math.ceil((until - Date.now()) / 1000));
  find("left").textContent = asked ? `${seconds} s left, or answer at the terminal` : "";
  button.disabled = busy || !seconds || Date.now() < readable;
}

async function approve() {
  const { number, challenge, rp_id, credentials, seconds } = asked;
  busy = true;
  say("Your browser asks for the passkey…");
  tick();
  try {
    const publicKey = {
      challenge: bytes(challenge), rpId: rp_id, userVerification: /** @type {const} */ ("required"), timeout: seconds * 1000,
      allowCredentials: credentials.map((/** @type {string} */ id) => ({ type: "public-key", id: bytes(id) })),
    };
    const made = /** @type {any} */ (await navigator.credentials.get({ publicKey }));
    const { clientDataJSON, authenticatorData, signature, userHandle } = made.response;
    const response = { clientDataJSON: text(clientDataJSON), authenticatorData: text(authenticatorData), signature: text(signature), userHandle: userHandle && text(userHandle) };
    const { by } = await ask("/approve", { number, credential: { id: made.id, rawId: text(made.rawId), type: made.type, response } });
    say(`Approved by the passkey ${by}.`);
    mine = number;
  } catch (error) {
    say(reason(error), true);
  }
  busy = false;
  tick();
}

/** The question this page approved, so that its end is not told as somebody else's. */
let mine = "";

/** @param {any} next */
function put(next) {
  const last = asked;
  asked = next.number ? next : null;
  unfold(Boolean(asked));
  if (!asked) {
    find("title").textContent = "Nothing waits at the gate.";
    document.title = "stringd gate";
    if (last && last.number !== mine && !busy) say("That question is over: answered at the terminal, withdrawn, or out of time.");
    return;
  }
  if (last?.number === asked.number) return;
  say(last && last.number !== mine ? "The question changed: this is another one." : "");
  find("title").textContent = asked.asks;
  document.title = `${asked.asks} stringd gate`;
  button.textContent = "Approve with passkey";
  show(asked.rows);
  find("note").hidden = !asked.may_need_terminal;
  find("note").textContent = "sudo may ask for its password at the gate’s terminal afterwards.";
  until = Date.now() + asked.seconds * 1000;
  readable = Date.now() + READING_MS;
}

async function follow() {
  button.onclick = approve;
  setInterval(tick, 250);
  for (;;) {
    try {
      put(await ask(`/question?seen=${asked?.number ?? ""}`));
    } catch (error) {
      put({});
      say(reason(error), true);
      await new Promise((done) => setTimeout(done, 2000));
    }
    tick();
  }
}

async function register() {
  const path = `/registration?token=${encodeURIComponent(token)}`;
  const awaited = await ask(path);
  find("title").textContent = `New passkey: ${awaited.name}`;
  find("deed").hidden = false;
  button.textContent = "Make the passkey";
  button.onclick = async () => {
    button.disabled = true;
    try {
      const publicKey = {
        challenge: bytes(awaited.challenge), rp: { id: awaited.rp_id, name: "stringd gate" },
        user: { id: bytes(awaited.user_id), name: `stringd gate: ${awaited.name}`, displayName: `stringd gate: ${awaited.name}` },
        pubKeyCredParams: [-7, -8, -257].map((alg) => ({ type: /** @type {const} */ ("public-key"), alg })),
        authenticatorSelection: { userVerification: /** @type {const} */ ("required"), residentKey: /** @type {const} */ ("preferred") },
        excludeCredentials: awaited.known.map((/** @type {string} */ id) => ({ type: "public-key", id: bytes(id) })),
        timeout: awaited.seconds * 1000,
      };
      const made = /** @type {any} */ (await navigator.credentials.create({ publicKey }));
      const { clientDataJSON, attestationObject } = made.response;
      const credential = { id: made.id, rawId: text(made.rawId), type: made.type, response: { clientDataJSON: text(clientDataJSON), attestationObject: text(attestationObject) } };
      let seen = await ask(`/register?token=${encodeURIComponent(token)}`, { credential });
      find("deed").hidden = true;
      show([[[seen.key, "bold"]]]);
      find("rows").hidden = false;
      say("Compare this with the gate’s terminal, and press y there.");
      while (seen.state === "made") {
        await new Promise((done) => setTimeout(done, 500));
        seen = await ask(path);
      }
      if (seen.state !== "registered") throw new Error("It was not registered at the terminal. You can remove it from your browser.");
      location.replace("/");
    } catch (error) {
      say(reason(error), true);
      button.disabled = false;
    }
  };
}

find("place").textContent = `on this machine, ${location.host}`;
if (!window.PublicKeyCredential) say("This browser has no passkeys. You can answer at the gate’s terminal.", true);
else if (token) register().catch((error) => say(reason(error), true));
else follow();
