/** A prompt one can answer: who asks to do what, why, the thing itself, then the answers. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { link } from "../feed.js";
import { isTyping, offer } from "../keys.js";
import { decide, hold, isInterrupted, reply, resume, whole } from "../prompts.js";
import { shown } from "../text.js";
import { Diff, readDiff } from "./diff.js";

/** Buttons take nothing so soon after they appear: the hand may be on its way to something else. */
const QUIET_MS = 400;

const DEEDS = /** @type {Record<string, string>} */ ({ "fs.read": "read", "fs.write": "write", "fs.exec": "run" });

/** What is asked for, in words. @param {any} prompt */
export function deed(prompt) {
  return DEEDS[prompt.operation] ?? prompt.operation ?? "";
}

/** @param {{ of: any, itemKey: string, over?: { answer: string, by: string }, opened?: boolean }} props `opened` by hand: it takes the focus. */
export function PromptCard({ of: prompt, itemKey, over, opened }) {
  const [message, setMessage] = useState(/** @type {any} */ (null));
  const [text, setText] = useState("");
  const [edited, setEdited] = useState(/** @type {string | null} */ (null));
  const [sending, setSending] = useState(false);
  const [failure, setFailure] = useState("");
  const card = useRef(/** @type {HTMLDivElement | null} */ (null));
  const appeared = useRef(performance.now());

  useEffect(() => hold(itemKey), [itemKey]);
  useEffect(() => whole(prompt, setMessage), [prompt.runId, prompt.requestId]);

  const interrupted = isInterrupted(prompt);
  const off = sending || link.value === "gone";
  const asked = message?.resource ?? prompt.resource;
  const changed = edited !== null && edited.trim() !== asked;

  /** @param {() => Promise<void>} work @param {boolean} [late] also when the prompt is over */
  const send = async (work, late = false) => {
    if (off || (over && !late) || performance.now() - appeared.current < QUIET_MS) return;
    setSending(true);
    setFailure("");
    try {
      await work();
    } catch (error) {
      setFailure(error instanceof Error ? error.message : String(error));
    } finally {
      setSending(false);
    }
  };
  /** @param {import("../prompts.js").Decision} decision */
  const answer = (decision) => send(() => decide(prompt, decision, decision.startsWith("deny") ? text.trim() : "", decision === "allow" && edited?.trim() !== asked ? edited?.trim() : ""));
  const given = useRef(answer);
  given.current = answer;

  useEffect(() => {
    if (prompt.prompt !== "permission" || over) return undefined;
    /** @param {import("../prompts.js").Decision} decision @returns {(event: KeyboardEvent) => void} */
    const by = (decision) => (event) => {
      const inside = card.current?.contains(/** @type {Node} */ (event.target));
      if (inside && !isTyping(event.target)) given.current(decision);
    };
    return offer("this prompt", [
      { key: "y", what: "allow once", run: by("allow") },
      { key: "Y", what: "allow for the session", run: by("allow-session") },
      { key: "n", what: "deny", run: by("deny") },
      { key: "N", what: "deny for the session", run: by("deny-session") },
    ]);
  }, [prompt.prompt, !over]);

  useLayoutEffect(() => { if (opened) card.current?.focus(); }, []);

  return html`<div class="prompt" tabindex="-1" ref=${card} role="group" aria-label=${`${prompt.agent} asks`}>
    ${prompt.prompt === "permission" ? html`<${Permission} of=${prompt} message=${message} edited=${over ? null : edited} setEdited=${setEdited} />` : (message?.question ?? message?.prompt ?? "").length > prompt.text.length && html`<p class="whole">${shown(message.question ?? message.prompt)}</p>`}
    ${over
      ? html`<p class="answered">${over.answer ? html`Answered <b>${shown(over.answer)}</b>${over.by ? ` by ${shown(over.by)}` : ""}.` : "It does not wait any more: its run ended."}</p>`
      : prompt.prompt === "permission"
        ? html`<div class="answers">
              <button class="button yes" disabled=${off} onClick=${() => answer("allow")}>${changed ? "Allow as edited" : "Allow once"} <kbd>y</kbd></button>
              <button class="button" disabled=${off || changed} onClick=${() => answer("allow-session")}>Allow for the session <kbd>Y</kbd></button>
              <span class="quiet">${covers(prompt)}</span>
            </div>
            <div class="answers">
              <input class="field" placeholder="Reason, told to the agent" aria-label="Reason for a denial" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} />
              <button class="button" disabled=${off} onClick=${() => answer("deny")}>Deny <kbd>n</kbd></button>
              <button class="button" disabled=${off} onClick=${() => answer("deny-session")}>Deny for the session <kbd>N</kbd></button>
            </div>`
        : html`<form class="answers" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); send(() => reply(prompt, text)); }}>
            <input class="field" aria-label="Answer" placeholder=${prompt.prompt === "question" ? "Your answer" : "What to say"} value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} />
            <button class="button yes" disabled=${off || !text.trim()}>Send <kbd>Enter</kbd></button>
          </form>`}
    ${interrupted && html`<p class="answered">Its run was interrupted when the daemon ended. ${over?.answer ? "Your answer is kept." : "An answer is kept until it is resumed."} <button class="button" disabled=${off} onClick=${() => send(() => resume(prompt.runId), true)}>Resume the run</button></p>`}
    ${failure && html`<p class="bad" role="alert">${shown(failure)}</p>`}
  </div>`;
}

/** What an answer for the session reaches. @param {any} prompt */
function covers(prompt) {
  return prompt.operation === "fs.exec" ? "for this command, until the segment ends" : "for this path, until the segment ends";
}

/** @param {{ of: any, message: any, edited: string | null, setEdited: (text: string | null) => void }} props */
function Permission({ of: prompt, message, edited, setEdited }) {
  const details = message?.details ?? {};
  const why = Array.isArray(details.why) ? details.why.join("; ") : details.why;
  return html`<dl class="why">
      <dt>Wants to</dt><dd>${deed(prompt)}${prompt.operation === "fs.exec" ? "" : html` <code>${shown(message?.resource ?? prompt.resource)}</code>`}${details.cwd && prompt.operation !== "fs.exec" ? html`, from <code>${shown(details.cwd)}</code>` : ""}</dd>
      ${why && html`<dt>You are asked</dt><dd>${shown(why)}</dd>`}
      ${details.reason && html`<dt>Says why</dt><dd>${shown(details.reason)}</dd>`}
    </dl>
    ${prompt.operation === "fs.exec" && (edited === null
      ? html`<pre class="whole" tabindex="0">${shown(message?.resource ?? prompt.resource)}</pre>`
      : html`<textarea class="field mono" aria-label="Command to run instead" rows=${Math.min(8, edited.split("\n").length + 1)} value=${edited} spellcheck=${false} onInput=${(/** @type {any} */ e) => setEdited(e.target.value)}></textarea>`)}
    ${details.editable && html`<p><button class="button plain" aria-expanded=${edited !== null} onClick=${() => setEdited(edited === null ? message.resource : null)}>${edited === null ? "Edit the command" : "Leave it as it was asked"}</button></p>`}
    ${typeof details.changes === "string" && details.changes && html`<${Diff} lines=${readDiff(details.changes)} />`}`;
}
