/** What was said, thought and done in a run, the newest at the end. */
import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { resolutions, waiting } from "../feed.js";
import { Markdown } from "../markdown.js";
import { promptKey } from "../prompts.js";
import { firstLine, shown } from "../text.js";
import { clock, took } from "../time.js";
import { Diff } from "./diff.js";
import { Mark } from "./mark.js";
import { PromptCard, deed } from "./prompt.js";

/** @typedef {import("../run_model.js").Entry} Entry */

const SHOWN = 300;
const OUTPUT_LINES = 40;

/** @param {{ entries: Entry[], version: number, begin: number, failedOnly?: boolean }} props */
export function Transcript({ entries, version, begin }) {
  const [more, setMore] = useState(SHOWN);
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const follows = useRef(true);
  useLayoutEffect(() => {
    const box = place.current;
    if (box && follows.current) box.scrollTop = box.scrollHeight;
  }, [version, entries.length]);
  const from = Math.max(0, entries.length - more);
  return html`<div class="transcript scroll" tabindex="0" role="log" aria-label="Transcript" ref=${place}
      onScroll=${(/** @type {any} */ e) => (follows.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 40)}>
    ${from > 0 && html`<p class="earlier"><button class="button plain" onClick=${() => setMore(more + SHOWN)}>${from} earlier, show more</button></p>`}
    ${entries.slice(from).map((entry) => html`<${Line} key=${entry.id + entry.kind} entry=${entry} begin=${begin} text=${entry.text} to=${entry.to} />`)}
  </div>`;
}

/** @param {{ entry: Entry, begin: number, text: string, to?: number | null }} props */
function Line({ entry, begin }) {
  return html`<article class=${`entry ${entry.kind}`} data-entry=${entry.id}>
    <time title=${new Date(entry.at).toLocaleString()}>${clock(entry.at - begin)}</time>
    <div class="body"><${Body} entry=${entry} /></div>
  </article>`;
}

/** @param {{ entry: Entry }} props */
function Body({ entry }) {
  switch (entry.kind) {
    case "said": return html`<p class="who quiet">${shown(entry.agent)}</p><${Markdown} text=${entry.text} />`;
    case "thought": return html`<${Fold} head=${html`<span class="quiet cut">thought ${entry.to ? took(entry.to - entry.at) : ""} ${firstLine(entry.text)}</span>`}><p class="thoughts">${shown(entry.text)}</p><//>`;
    case "tool": return html`<${ToolCall} entry=${entry} />`;
    case "prompt": return html`<${Asked} entry=${entry} />`;
    case "steer": return html`<p><b>you</b> ${shown(entry.text)}</p>`;
    case "result": return html`<p class="who"><${Mark} of="done" /> <b>Result</b></p><${Markdown} text=${entry.text} />`;
    case "error": return html`<p class="bad"><${Mark} of=${entry.text.startsWith("CANCELLED") ? "stopped" : "failed"} /> ${shown(entry.text)}</p>`;
    default: return html`<p class="quiet">${shown(entry.text)}</p>`;
  }
}

/** @param {{ head: any, children?: any, open?: boolean }} props */
function Fold({ head, children, open: first }) {
  const [open, setOpen] = useState(Boolean(first));
  return html`<button class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}><svg class="turn" viewBox="0 0 8 8" aria-hidden="true"><path d="M2 1l4 3-4 3" fill="none" stroke="currentColor" stroke-width="1.3" /></svg>${head}</button>
    ${open && html`<div class="folded">${children}</div>`}`;
}

const MAIN = ["command", "path", "file_path", "url", "query", "pattern", "text", "question", "cmd"];

/** @param {{ entry: Entry }} props */
function ToolCall({ entry }) {
  const args = entry.args && typeof entry.args === "object" ? entry.args : { arguments: entry.args };
  const main = MAIN.find((name) => typeof args[name] === "string");
  const change = changeOf(entry.tool ?? "", args);
  const size = entry.output === undefined ? "" : sizeOf(entry.output);
  const head = html`<b class=${entry.failed ? "bad" : ""}>${shown(entry.tool)}</b> <code class="cut">${main ? firstLine(args[main]) : ""}</code>
    <span class="end quiet">${[size, entry.to ? took(entry.to - entry.at) : html`<b>working</b>`].filter(Boolean).map((each, i) => html`${i ? ", " : ""}${each}`)}</span>`;
  return html`<${Fold} key=${Boolean(entry.to)} head=${head} open=${Boolean(change && entry.to)}>
    ${change ? html`<${Diff} lines=${change} />` : html`<dl class="arguments">${Object.entries(args).map(([name, value]) => html`<dt>${shown(name)}</dt><dd class="mono">${shown(typeof value === "string" ? value : JSON.stringify(value))}</dd>`)}</dl>`}
    ${entry.output !== undefined && html`<${Output} text=${entry.output} />`}
  <//>`;
}

/** @param {{ text: string }} props */
function Output({ text }) {
  const [whole, setWhole] = useState(false);
  const lines = text.split("\n");
  const hidden = lines.length - OUTPUT_LINES;
  return html`<pre class="output" tabindex="0">${shown(whole || hidden <= 0 ? text : lines.slice(0, OUTPUT_LINES).join("\n"))}</pre>
    ${!whole && hidden > 0 && html`<button class="button plain" onClick=${() => setWhole(true)}>${hidden} lines not shown</button>`}`;
}

/** What a writing tool changes, as lines of a diff. @param {string} tool @param {any} args @returns {import("./diff.js").Line[] | null} */
export function changeOf(tool, args) {
  const path = args.path ?? args.file_path;
  if (/create_file|write_file/.test(tool) && typeof args.content === "string")
    return [{ kind: "hunk", text: `${path}, new` }, ...args.content.replace(/\n$/, "").split("\n").map((/** @type {string} */ text, /** @type {number} */ i) => ({ kind: /** @type {const} */ ("add"), new: i + 1, text }))];
  const edits = Array.isArray(args.edits) ? args.edits : args.oldText !== undefined || args.old_text !== undefined ? [args] : null;
  if (!/edit|replace|patch/.test(tool) || !edits) return null;
  return edits.flatMap((/** @type {any} */ edit) => [
    { kind: /** @type {const} */ ("hunk"), text: String(path ?? "") },
    ...linesOf(edit.oldText ?? edit.old_text ?? edit.old ?? "", "del"),
    ...linesOf(edit.newText ?? edit.new_text ?? edit.new ?? "", "add"),
  ]);
}

/** @param {string} text @param {"add" | "del"} kind */
const linesOf = (text, kind) => (text ? String(text).replace(/\n$/, "").split("\n").map((line) => ({ kind, text: line })) : []);

/** @param {string} text */
function sizeOf(text) {
  const lines = text ? text.split("\n").length : 0;
  const bytes = new TextEncoder().encode(text).length;
  return `${lines} line${lines === 1 ? "" : "s"}, ${bytes < 1000 ? `${bytes} B` : `${(bytes / 1000).toFixed(1)} KB`}`;
}

/** @param {{ entry: Entry }} props */
function Asked({ entry }) {
  const prompt = entry.prompt;
  const key = promptKey(prompt);
  const open = waiting.value.has(key);
  const what = prompt.prompt === "permission" ? html`asks to ${deed(prompt)} <code>${shown(prompt.resource)}</code>` : prompt.prompt === "question" ? html`asks ${shown(prompt.text)}` : "wants your next words";
  if (!open) {
    const over = resolutions().get(key);
    const denied = String(over?.answer ?? "").startsWith("deny");
    const [mark, word] = !over ? /** @type {const} */ (["gate", ""]) : !over.answer ? /** @type {const} */ (["stopped", "nobody answered"]) : denied ? /** @type {const} */ (["denied", "denied"]) : /** @type {const} */ (["done", prompt.prompt === "permission" ? "allowed" : "answered"]);
    return html`<p class="quiet"><${Mark} of=${mark} past /> ${shown(entry.agent)} ${what}${word && html`: <b>${word}</b>${over?.by ? ` by ${shown(over?.by)}` : ""}${prompt.prompt !== "permission" && over?.answer ? html`, ${shown(over?.answer)}` : ""}`}</p>`;
  }
  return html`<div class="card"><p class="card-head"><${Mark} of="waits" /> <b>${shown(entry.agent)}</b> ${what}</p><div class="card-body"><${PromptCard} of=${prompt} itemKey=${key} /></div></div>`;
}
