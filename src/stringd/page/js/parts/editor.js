/** The document of a topic as text to change. What changed meanwhile is shown before it is overwritten. */
import { html, useEffect, useRef, useState } from "../html.js";
import { quoted } from "../arguments.js";
import { exec, parts } from "../exec.js";
import { diffLines } from "../line_diff.js";
import { shown } from "../text.js";
import { Diff } from "./diff.js";

/** @typedef {{ base: string, text: string }} Draft */

const LONGEST = 1_000_000;
/** Drafts by topic and document: they survive a look at another view. @type {Map<string, Draft>} */
const drafts = new Map();

/** @param {string} text */
const unix = (text) => text.replaceAll("\r\n", "\n");

/** The file behind an address, as commands name it; empty where they could not. @param {string} uri */
export function editablePath(uri) {
  if (!uri.startsWith("file://")) return "";
  try {
    const path = decodeURIComponent(uri.slice("file://".length));
    return /[#\n]|:[Ll]?\d/.test(path) ? "" : path;
  } catch {
    return "";
  }
}

/** @param {{ user: string, topic: string, uri: string, run: (command: string) => Promise<any> }} props */
export function Editor({ user, topic, uri, run }) {
  const key = [user, topic, uri].join("\n");
  const path = editablePath(uri);
  const [draft, setDraft] = useState(/** @type {Draft | null} */ (drafts.get(key) ?? null));
  const [theirs, setTheirs] = useState(/** @type {string | null} */ (null));
  const [said, setSaid] = useState({ text: "", bad: false });
  const field = useRef(/** @type {HTMLTextAreaElement | null} */ (null));
  const changed = draft !== null && draft.text !== draft.base;
  /** @param {Draft | null} next */
  const keep = (next) => {
    if (next && next.text !== next.base) drafts.set(key, next);
    else drafts.delete(key);
    setDraft(next);
  };
  const read = async () => {
    // A topic keeps the document it opened: the file may be another by now.
    const fresh = await exec(user, topic, "/refresh");
    if (!fresh.ok) throw new Error(fresh.text);
    const reply = await exec(user, topic, "/source");
    if (!reply.ok) throw new Error(reply.text);
    return unix(reply.text.replace(/^[^\n]*\n---\n/, ""));
  };
  /** @param {() => Promise<void>} work */
  const tried = (work) => work().catch((error) => setSaid({ text: error.message, bad: true }));
  useEffect(() => {
    if (!draft) tried(async () => { const text = await read(); keep({ base: text, text }); });
  }, [key]);
  useEffect(() => {
    /** @param {BeforeUnloadEvent} event */
    const warn = (event) => event.preventDefault();
    if (changed) addEventListener("beforeunload", warn);
    return () => removeEventListener("beforeunload", warn);
  }, [changed]);
  /** @param {boolean} [anyway] */
  const save = (anyway = false) => tried(async () => {
    if (!draft || (!changed && !anyway)) return;
    const now = await read();
    if (now !== draft.base && !anyway) return setTheirs(now);
    const reply = await run(`/write ${anyway ? "--force " : ""}-- ${quoted(path)}\n${draft.text}`);
    if (!reply.ok) throw new Error(parts(reply.text).message);
    await exec(user, topic, "/refresh");
    setTheirs(null);
    keep({ base: draft.text, text: draft.text });
    setSaid({ text: "Saved.", bad: false });
  });
  const take = () => {
    if (theirs !== null) keep({ base: theirs, text: theirs });
    setTheirs(null);
  };
  if (!path) return html`<p class="quiet pad">Only a file of this machine whose name holds no # and no :number can be edited here.</p>`;
  if (draft && draft.base.length > LONGEST) return html`<p class="quiet pad">This file is too long to edit here.</p>`;
  if (!draft) return html`<div class="pad" aria-busy="true">${said.text && html`<p class="bad" role="alert">${shown(said.text)}</p>`}</div>`;
  if (theirs !== null)
    return html`<section class="editor" aria-label="Changed meanwhile"><div class="pad"><h2>The file changed since you began.</h2><p class="quiet">This is what somebody else did to it. Your text is not saved yet.</p>
      <${Diff} lines=${diffLines(draft.base, theirs)} />
      <p class="answers"><button class="button" onClick=${() => setTheirs(null)}>Back to my text</button> <button class="button" onClick=${take}>Take theirs, drop mine</button> <button class="button stop" onClick=${() => save(true)}>Overwrite with mine</button></p></div></section>`;
  return html`<form class="editor" onSubmit=${(/** @type {Event} */ e) => { e.preventDefault(); save(); }}>
    <textarea ref=${field} class="field mono" aria-label="Text of the document" spellcheck=${false} value=${draft.text}
      onInput=${(/** @type {any} */ e) => { keep({ base: draft.base, text: e.target.value }); setSaid({ text: "", bad: false }); }}
      onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if ((e.ctrlKey || e.metaKey) && e.key === "s") { e.preventDefault(); save(); } }}></textarea>
    <div class="bar"><button class="button yes" disabled=${!changed}>Save <kbd>Ctrl S</kbd></button>
      <button class="button" type="button" disabled=${!changed} onClick=${() => keep({ base: draft.base, text: draft.base })}>Undo all</button>
      <span class=${said.bad ? "bad" : "quiet"} role=${said.bad ? "alert" : "status"}>${shown(said.text) || (changed ? "Not saved yet." : "")}</span></div></form>`;
}
