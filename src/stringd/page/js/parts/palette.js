/** Ctrl-K: go somewhere, do something, find something; and the list of keys. */
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { events, runs, topics, waiting } from "../feed.js";
import { offer, offered } from "../keys.js";
import { go, to } from "../route.js";
import { shortId, shown } from "../text.js";
import { Mark, runState } from "./mark.js";

/** @typedef {{ group: "Go to" | "Do" | "In events", mark: import("./mark.js").MarkName | "", name: string, note: string, href: string, run?: () => void }} Entry */

const open = signal(/** @type {"" | "palette" | "keys"} */ (""));
export const openPalette = () => (open.value = "palette");
export const openKeys = () => (open.value = "keys");

const VIEWS = /** @type {[string, string, string][]} */ ([["Inbox", "", "i"], ["Runs", "runs", "r"], ["Topics", "topics", "t"], ["Events", "events", "e"], ["Gate", "gate", "g"], ["Health", "health", "h"]]);

/** @param {string} wanted @returns {Entry[]} */
function entries(wanted) {
  const known = [...runs.value.values()].reverse();
  const waits = new Set([...waiting.value.values()].map((each) => each.runId));
  /** @type {Entry[]} */
  const found = VIEWS.map(([name, path, key]) => ({ group: "Go to", mark: "idle", name, note: `g ${key}`, href: to(path) }));
  for (const run of known) {
    const [mark, word] = runState(run.status, waits.has(run.runId));
    found.push({ group: "Go to", mark, name: `${shown(run.strategyName)} ${shortId(run.runId)}`, note: `run, ${word}`, href: to("run", run.runId) });
  }
  for (const topic of topics.value.values())
    found.push({ group: "Go to", mark: topic.executing || topic.busy ? "working" : "idle", name: shown(topic.topic), note: topic.user === "default" ? "topic" : `topic of ${shown(topic.user)}`, href: to("topic", topic.user, topic.topic) });
  found.push({ group: "Do", mark: "", name: "Start a run", note: "", href: `${to("runs")}?start=1` }, { group: "Do", mark: "", name: "Open a topic", note: "", href: `${to("topics")}?new=1` });
  for (const run of known) {
    const name = `${shown(run.strategyName)} ${shortId(run.runId)}`;
    if (run.status === "running") found.push({ group: "Do", mark: "", name: `Stop ${name}`, note: "asks once more", href: `${to("run", run.runId)}?ask=stop` });
    found.push({ group: "Do", mark: "", name: `Fork ${name} from a step`, note: "", href: `${to("run", run.runId)}?ask=fork` });
  }
  for (const topic of topics.value.values())
    if (topic.type === "bash" && (topic.executing || topic.busy)) found.push({ group: "Do", mark: "", name: `Kill what runs in ${shown(topic.topic)}`, note: "asks once more", href: `${to("topic", topic.user, topic.topic)}?ask=kill` });
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const fitting = found.filter((each) => words.every((word) => `${each.name} ${each.note}`.toLowerCase().includes(word)));
  // Without a word only what one goes to; what can be done is found by its name.
  const shortened = words.length ? fitting.slice(0, MOST) : fitting.filter((each) => each.group === "Go to" || !each.name.includes(" from a step")).slice(0, MOST);
  if (words.length) shortened.push({ group: "In events", mark: "", name: `Search ${events.value.length} events for “${shown(wanted.trim())}”`, note: "", href: `${to("events")}?q=${encodeURIComponent(wanted.trim())}` });
  return shortened.sort((a, b) => GROUPS.indexOf(a.group) - GROUPS.indexOf(b.group));
}

const GROUPS = ["Go to", "Do", "In events"];
const MOST = 50;

/** A name with the words that were looked for in bold. @param {{ name: string, wanted: string }} props */
function Found({ name, wanted }) {
  const word = wanted.trim().split(/\s+/)[0]?.toLowerCase() ?? "";
  const at = word ? name.toLowerCase().indexOf(word) : -1;
  if (at < 0) return html`<span class="cut">${name}</span>`;
  return html`<span class="cut">${name.slice(0, at)}<b>${name.slice(at, at + word.length)}</b>${name.slice(at + word.length)}</span>`;
}

export function Overlays() {
  useEffect(
    () => offer("everywhere", [
      { key: "Ctrl-k", what: "search or do", run: openPalette },
      { key: "/", what: "search", run: openPalette },
      { key: "?", what: "this list", run: openKeys },
      ...VIEWS.map(([name, path, key]) => ({ key: `g ${key}`, what: name.toLowerCase(), run: () => go(to(path)) })),
    ]),
    [],
  );
  if (!open.value) return null;
  return html`<${Overlay}>${open.value === "palette" ? html`<${Palette} />` : html`<${Keys} />`}<//>`;
}

const close = () => (open.value = "");

/** @param {{ children?: any }} props */
function Overlay({ children }) {
  const back = useRef(document.activeElement);
  useLayoutEffect(() => {
    const end = offer("overlay", [{ key: "Escape", what: "close", run: close }]);
    return () => {
      end();
      if (back.current instanceof HTMLElement) back.current.focus();
    };
  }, []);
  return html`<div class="overlay" onMouseDown=${(/** @type {MouseEvent} */ e) => e.target === e.currentTarget && close()}>${children}</div>`;
}

function Palette() {
  const [wanted, setWanted] = useState("");
  const [at, setAt] = useState(0);
  const input = useRef(/** @type {HTMLInputElement | null} */ (null));
  // Before the next key: after the picture is drawn would be too late for a fast typist.
  useLayoutEffect(() => input.current?.focus(), []);
  const found = entries(wanted);
  const chosen = Math.min(at, found.length - 1);
  /** @param {Entry | undefined} entry @param {boolean} [apart] in a tab of its own */
  const choose = (entry, apart) => {
    close();
    if (entry && apart) window.open(entry.href, "_blank", "noopener");
    else if (entry) go(entry.href);
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") choose(found[chosen], event.ctrlKey || event.metaKey);
    else return;
    event.preventDefault();
  };
  return html`<div class="sheet" role="dialog" aria-label="Search or do" aria-modal="true">
    <div class="asked"><${Glass} /><input ref=${input} value=${wanted} placeholder="Go to a run or a topic, or do something" aria-label="Search or do" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${chosen >= 0 ? `palette-${chosen}` : undefined}
      onInput=${(/** @type {any} */ e) => { setWanted(e.target.value); setAt(0); }} onKeyDown=${press} /><kbd>Esc</kbd></div>
    <ul class="scroll" id="palette-list" role="listbox" aria-label="Found">
      ${found.map((each, index) => html`${each.group !== found[index - 1]?.group && html`<li class="group quiet" role="presentation">${each.group}</li>`}<li id=${`palette-${index}`} role="option" aria-selected=${index === chosen} onClick=${(/** @type {MouseEvent} */ e) => choose(each, e.ctrlKey || e.metaKey)}>
        ${each.mark ? html`<${Mark} of=${each.mark} />` : html`<span class="mark"></span>`} <${Found} name=${each.name} wanted=${wanted} /> <span class="end">${each.note}</span></li>`)}
    </ul>
    <p class="hints" aria-hidden="true"><kbd>Enter</kbd> go <kbd>Ctrl Enter</kbd> new tab</p>
  </div>`;
}

const NAMES = /** @type {Record<string, string>} */ ({ "this prompt": "In an open prompt only" });
const MARKS = /** @type {[import("./mark.js").MarkName, string, string][]} */ ([
  ["waits", "waits", "answer it here"], ["gate", "gate", "answer in its terminal"], ["working", "working", ""], ["next", "next", ""], ["idle", "idle", ""], ["done", "done", ""],
  ["stopped", "stopped", ""], ["denied", "denied", ""], ["interrupted", "interrupted", ""], ["failed", "failed", ""],
]);

function Keys() {
  const sheet = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => sheet.current?.focus(), []);
  // The keys of this view first.
  const layers = offered().filter((layer) => layer.keys.length && layer.name !== "overlay").sort((a, b) => Number(b.name === "everywhere") - Number(a.name === "everywhere"));
  return html`<div class="sheet wide" role="dialog" aria-label="Keys" aria-modal="true" tabindex="-1" ref=${sheet}>
    <header><h1>Keys</h1><span class="quiet">single letters work only when you are not typing</span><kbd>Esc</kbd></header>
    <div class="keys-columns scroll">${layers.map((layer) => html`<section><h2>${NAMES[layer.name] ?? `${layer.name[0]?.toUpperCase()}${layer.name.slice(1)}`}</h2>
      <dl>${layer.keys.map((key) => html`<div><dt>${(key.key.startsWith("Ctrl-") ? [`Ctrl ${key.key.slice(5).toUpperCase()}`] : key.key.split(" ")).map((each) => html`<kbd>${each}</kbd> `)}</dt><dd>${key.what}</dd></div>`)}</dl></section>`)}
      <section><h2>Marks</h2><dl>${MARKS.map(([mark, word, more]) => html`<div><dt><${Mark} of=${mark} /> ${word}</dt><dd>${more}</dd></div>`)}</dl></section></div>
  </div>`;
}

/** A magnifying glass. */
export const Glass = () => html`<svg class="glass" viewBox="0 0 12 12" aria-hidden="true"><circle cx="5" cy="5" r="3.5" fill="none" stroke="currentColor" stroke-width="1.4" /><path d="M7.6 7.6 11 11" stroke="currentColor" stroke-width="1.4" /></svg>`;
