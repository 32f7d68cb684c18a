/** Commands in topics, as every client sends them: `POST /exec`. */

/** @typedef {{ ok: boolean, code: string | null, text: string, meta: any }} Reply */

/** A header carries bytes; the daemon reads them as UTF-8. @param {string} text */
const bytes = (text) => String.fromCharCode(...new TextEncoder().encode(text));

/**
 * Run one command in its topic's turn. What the daemon does not take is thrown.
 * @param {string} user @param {string} topic @param {string} cmd @returns {Promise<Reply>}
 */
export async function exec(user, topic, cmd) {
  const answer = await fetch("/exec", {
    method: "POST", headers: { "Content-Type": "application/json", "X-User-Id": bytes(user) }, body: JSON.stringify({ cmd, topic }),
  });
  const body = await answer.text();
  if (!answer.ok) throw new Error(refusal(body) ?? `The daemon answered ${answer.status}.`);
  const said = events(body);
  const head = said.get("head");
  if (!head) throw new Error("The daemon stopped before it answered.");
  // The first line names the command again.
  const text = String(said.get("content") ?? "");
  return { ok: head.ok, code: head.code, text: text.slice(text.indexOf("\n") + 1), meta: head.meta };
}

/** @param {string} body @returns {Map<string, any>} */
function events(body) {
  const found = new Map();
  for (const block of body.split("\n\n")) {
    const [name, data] = block.split("\n");
    if (name?.startsWith("event: ") && data?.startsWith("data: ")) found.set(name.slice(7), JSON.parse(data.slice(6)));
  }
  return found;
}

/** @param {string} body */
function refusal(body) {
  try {
    const { error, message } = JSON.parse(body);
    return message ?? error;
  } catch {
    return undefined;
  }
}

/** The words above the line that parts them from the document. @param {string} text */
export function parts(text) {
  const at = text.indexOf("\n---\n");
  return at < 0 ? { message: text, content: "" } : { message: text.slice(0, at), content: text.slice(at + 5).trim() };
}

/** What a client calls itself, as people say it. @param {string} client */
export function clientName(client) {
  if (/^Mozilla\//.test(client)) return "you";
  return client.split(/[/ (]/, 1)[0] || "unknown";
}
