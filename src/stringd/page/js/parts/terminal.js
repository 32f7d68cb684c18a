/** A terminal: each command with who sent it and how long it took, what it printed, and a line to type into it. */
import { html, useLayoutEffect, useRef, useState } from "../html.js";
import { clientName } from "../exec.js";
import { shown } from "../text.js";
import { clock, now, took } from "../time.js";

/** @typedef {import("../terminal.js").Terminal} Terminal */
/** @typedef {import("../terminal.js").Command} Command */

const [FIRST, LAST, LIVE, SHOWN] = [4, 24, 500, 40];

/** @param {{ terminal: Terminal, version: number, home: (path: string) => string }} props */
export function TerminalText({ terminal, version, home }) {
  const [more, setMore] = useState(SHOWN);
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const follows = useRef(true);
  useLayoutEffect(() => {
    const box = place.current;
    if (box && follows.current) box.scrollTop = box.scrollHeight;
  }, [version]);
  const from = Math.max(0, terminal.commands.length - more);
  return html`<div class="terminal scroll" ref=${place} tabindex="0" role="log" aria-label="Terminal"
      onScroll=${(/** @type {any} */ e) => (follows.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < 40)}>
    ${terminal.missed && !from && html`<p class="quiet">[older output is not kept]</p>`}
    ${from > 0 && html`<p><button class="button plain" onClick=${() => setMore(more + SHOWN)}>${from} earlier, show more</button></p>`}
    ${terminal.commands.slice(from).map((each) => html`<${Ran} key=${`${each.number}-${each.at}`} of=${each} version=${each.version} home=${home} />`)}
    ${!terminal.commands.length && html`<p class="quiet">Nothing has run here since the daemon started.</p>`}
  </div>`;
}

/** @param {{ of: Command, version: number, home: (path: string) => string }} props */
function Ran({ of: command, home }) {
  const [whole, setWhole] = useState(false);
  const lines = command.lines.at(-1)?.pieces.length === 0 ? command.lines.slice(0, -1) : command.lines;
  const live = command.status === null;
  const most = live ? LIVE : FIRST + LAST;
  const hidden = whole ? 0 : lines.length - most;
  const [head, tail] = hidden > 0 ? (live ? [[], lines.slice(-LIVE)] : [lines.slice(0, FIRST), lines.slice(-LAST)]) : [lines, []];
  return html`<article class="ran" id=${`ran-${command.number}`}>
    ${command.number > 0 && html`<header><code><span class="quiet">${shown(home(command.directory))} $</span> <b>${shown(command.text)}</b></code><span class="quiet"><${Spent} of=${command} status=${command.status} /></span></header>`}
    ${command.number === 0 && html`<header class="quiet">in the background</header>`}
    <pre>${command.lost && html`<span class="quiet">[earlier lines are not kept]${"\n"}</span>`}${head.map(row)}${hidden > 0 && html`<button class="quiet" onClick=${() => setWhole(true)}>[${hidden} lines not shown]</button>${"\n"}`}${tail.map(row)}${live && command.number > 0 && html`<span class="caret" aria-hidden="true"></span>`}</pre>
    ${!live && html`<p class="exit quiet">exit <span class=${command.status ? "bad" : ""}>${command.status}</span>${command.screen ? ", drawn on a screen" : lines.length ? "" : ", no output"}</p>`}
  </article>`;
}

/** @param {import("../terminal.js").Line} line */
const row = (line) => html`<span key=${line.id}>${line.pieces.map((each) => (each.name ? html`<span class=${each.name}>${shown(each.text)}</span>` : shown(each.text)))}${"\n"}</span>`;

/** @param {{ of: Command, status: number | null }} props */
function Spent({ of: command, status }) {
  return html`${shown(clientName(command.by))}, ${status === null ? clock(now.value - command.at) : took(command.ms)}`;
}

const KEYS = [["Tab", "tab"], ["Esc", "escape"], ["Up", "up"], ["Down", "down"], ["Ctrl-D", "ctrl-d"]];

/** @param {{ busy: boolean, command: string, place: string, send: (line: string) => void, run: (line: string, screen: boolean) => void, field: any, history: string[] }} props */
export function TerminalLine({ busy, command, place, send, run, field, history }) {
  const [line, setLine] = useState("");
  const [at, setAt] = useState(-1);
  const [drawn, setDrawn] = useState(false);
  /** @param {Event} event */
  const submit = (event) => {
    event.preventDefault();
    if (!busy && !line.trim()) return;
    if (busy) send(line.startsWith("//") ? line : `//input ${line}`);
    else run(line, drawn);
    setLine("");
    setAt(-1);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.ctrlKey && event.key === "c" && busy && getSelection()?.isCollapsed) send("//key ctrl-c");
    else if (event.ctrlKey && event.key === "d" && busy) send("//key ctrl-d");
    else if ((event.ctrlKey && event.key === "]") || event.key === "Escape") field.current?.blur();
    else if (!busy && (event.key === "ArrowUp" || event.key === "ArrowDown")) {
      const next = Math.max(-1, Math.min(history.length - 1, at + (event.key === "ArrowUp" ? 1 : -1)));
      setAt(next);
      setLine(next < 0 ? "" : history[history.length - 1 - next] ?? "");
    } else return;
    event.preventDefault();
  };
  const what = busy ? `types into ${shown(command).split(/\s/, 1)[0]} >` : `${shown(place)} $`;
  return html`<form class="typing" onSubmit=${submit}><label class="quiet mono cut" for="terminal-line">${what}</label>
    <input class="field mono" id="terminal-line" ref=${field} value=${line} autocomplete="off" autocapitalize="off" spellcheck=${false} onInput=${(/** @type {any} */ e) => setLine(e.target.value)} onKeyDown=${press} />
    <button class="button">${busy ? "Send" : "Run"} <kbd>Enter</kbd></button>
    ${!busy && html`<label class="drawn quiet" title="For programs that draw, such as editors; those that are well known get one by themselves"><input class="check" type="checkbox" checked=${drawn} onChange=${(/** @type {any} */ e) => setDrawn(e.target.checked)} /> on a screen</label>`}
    ${busy && html`<span class="keys">${KEYS.map(([name, key]) => html`<button type="button" class="button" onClick=${() => send(`//key ${key}`)}>${name}</button>`)}</span>`}</form>`;
}
