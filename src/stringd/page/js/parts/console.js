/** A console: what was said, the prompt, and one line kept free for completions. */
import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { completions } from "../completions.js";
import { clientName, parts } from "../exec.js";
import { Markdown } from "../markdown.js";
import { firstLine, shown } from "../text.js";
import { took } from "../time.js";

/** @typedef {{ id: string, at: number, command: string, by: string, ms: number | null, reply: import("../exec.js").Reply | null, failed: string }} Entry */

const SHOWN = 60;

/**
 * @param {{ topic: string, view: any, entries: Entry[], send: (line: string) => void, field: any, line: string, setLine: (line: string) => void }} props
 */
export function Console({ topic, view, entries, send, field, line, setLine }) {
  const log = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [at, setAt] = useState(-1);
  const own = entries.filter((each) => each.by === "you").map((each) => each.command);
  const offers = completions(line, view);
  useLayoutEffect(() => {
    if (log.current) log.current.scrollTop = log.current.scrollHeight;
  }, [entries]);
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key === "Tab" && !event.shiftKey && offers[0]) setLine(offers[0].line);
    else if (event.key === "ArrowUp" || event.key === "ArrowDown") {
      const next = Math.max(-1, Math.min(own.length - 1, at + (event.key === "ArrowUp" ? 1 : -1)));
      setAt(next);
      setLine(next < 0 ? "" : own[own.length - 1 - next] ?? "");
    } else if (event.key === "Escape") field.current?.blur();
    else return;
    event.preventDefault();
  };
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (!line.trim()) return;
    send(line);
    setLine("");
    setAt(-1);
  };
  return html`<section class="console" aria-label="Console">
    <div class="log" ref=${log} role="log" aria-label="Commands of this topic" tabindex="0">${entries.slice(-SHOWN).map((each) => html`<${Said} key=${each.id} entry=${each} />`)}</div>
    <form onSubmit=${submit}><label class="quiet" for="console-line">${shown(topic)} ></label>
      <input id="console-line" ref=${field} value=${line} autocomplete="off" autocapitalize="off" spellcheck=${false} placeholder="/open, /set, /act, /help"
        onInput=${(/** @type {any} */ e) => { setLine(e.target.value); setAt(-1); }} onKeyDown=${press} /><button class="only-read">Send</button></form>
    <div class="offers" aria-live="polite">${offers.map((each, index) => html`<button type="button" tabindex="-1" class=${index ? "" : "first"} onClick=${() => { setLine(each.line); field.current?.focus(); }}>${shown(each.shown)}</button>`)}
      <span class="quiet end">${offers.length ? "Tab takes the first" : own.length ? "Up for history" : ""}</span></div>
  </section>`;
}

/** @param {{ entry: Entry }} props */
function Said({ entry }) {
  const said = entry.reply && parts(entry.reply.text);
  // What was opened is in the page above.
  const opened = entry.reply?.ok && /^(Opened|Refreshed|Back)\b/.test(said?.message ?? "");
  return html`<div class="exchange"><p><span class="quiet">></span> <code class="cut">${firstLine(entry.command)}</code><span class="end quiet">${shown(entry.by === "you" ? "you" : clientName(entry.by))}${entry.ms === null ? ", running" : `, ${took(entry.ms)}`}</span></p>
    ${entry.failed && html`<p class="bad">${shown(entry.failed)}</p>`}
    ${said && html`<div class="reply">${!entry.reply?.ok ? html`<p class="bad">${shown(entry.reply?.text)}</p>` : html`${said.message.trim() && html`<p class="quiet">${shown(opened ? firstLine(said.message) : said.message)}</p>`}${said.content && !opened && html`<${Content} text=${said.content} />`}`}</div>`}</div>`;
}

/** Tables of commands and variables are laid out with spaces; documents are Markdown. @param {{ text: string }} props */
function Content({ text }) {
  const laid = /\S {3,}\S/.test(text) || /^[{$]\S+ = /m.test(text);
  return laid ? html`<pre>${shown(text)}</pre>` : html`<${Markdown} text=${text} />`;
}
