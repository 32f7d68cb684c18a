/** Ctrl-K: go somewhere, do something, find something; and the list of keys. */
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { runs, topics } from "../feed.js";
import { offer, offered } from "../keys.js";
import { go, to } from "../route.js";
import { shortId, shown } from "../text.js";
import { Mark, runState } from "./mark.js";

/** @typedef {{ mark: any, name: string, note: string, run: () => void }} Entry */

const open = signal(/** @type {"" | "palette" | "keys"} */ (""));
export const openPalette = () => (open.value = "palette");
export const openKeys = () => (open.value = "keys");

/** @type {Entry[]} */
const doings = [];

/** Add something that can be done from anywhere. @param {Entry} entry */
export const offerDoing = (entry) => doings.push(entry);

/** @returns {Entry[]} */
function entries() {
  const views = [["Inbox", ""], ["Runs", "runs"], ["Topics", "topics"], ["Events", "events"], ["Gate", "gate"], ["Health", "health"]];
  return [
    ...views.map(([name, path]) => ({ mark: "idle", name: `Go to ${name}`, note: "", run: () => go(to(path ?? "")) })),
    ...doings,
    ...[...runs.value.values()].reverse().map((run) => ({
      mark: runState(run.status, false)[0], name: shown(run.strategyName), note: shortId(run.runId), run: () => go(to("run", run.runId)),
    })),
    ...[...topics.value.values()].map((topic) => ({
      mark: topic.executing ? "working" : "idle", name: shown(topic.topic), note: shown(topic.user), run: () => go(to("topic", topic.user, topic.topic)),
    })),
  ];
}

export function Overlays() {
  useEffect(
    () => offer("everywhere", [
      { key: "Ctrl-k", what: "search or do", run: openPalette },
      { key: "/", what: "search", run: openPalette },
      { key: "?", what: "keys", run: openKeys },
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
  useEffect(() => {
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
  useEffect(() => input.current?.focus(), []);
  const words = wanted.toLowerCase().split(/\s+/).filter(Boolean);
  const found = entries().filter((each) => words.every((word) => `${each.name} ${each.note}`.toLowerCase().includes(word))).slice(0, 50);
  const chosen = Math.min(at, found.length - 1);
  /** @param {Entry | undefined} entry */
  const choose = (entry) => {
    close();
    entry?.run();
  };
  /** @param {KeyboardEvent} event */
  const press = (event) => {
    if (event.key === "ArrowDown") setAt(Math.min(chosen + 1, found.length - 1));
    else if (event.key === "ArrowUp") setAt(Math.max(chosen - 1, 0));
    else if (event.key === "Enter") choose(found[chosen]);
    else return;
    event.preventDefault();
  };
  return html`<div class="sheet" role="dialog" aria-label="Search or do" aria-modal="true">
    <input ref=${input} value=${wanted} placeholder="Go to a run or a topic, or do something" aria-label="Search or do" role="combobox" aria-expanded="true" aria-controls="palette-list" aria-activedescendant=${chosen >= 0 ? `palette-${chosen}` : undefined}
      onInput=${(/** @type {any} */ e) => { setWanted(e.target.value); setAt(0); }} onKeyDown=${press} />
    <ul class="scroll" id="palette-list" role="listbox" aria-label="Found">
      ${found.map((each, index) => html`<li id=${`palette-${index}`} role="option" aria-selected=${index === chosen} onClick=${() => choose(each)}>
        <${Mark} of=${each.mark} /> <span class="cut">${each.name}</span> <span class="end mono">${each.note}</span></li>`)}
    </ul>
    ${found.length === 0 && html`<p class="quiet" style=${{ padding: "8px 16px" }}>Nothing is called that.</p>`}
  </div>`;
}

function Keys() {
  const sheet = useRef(/** @type {HTMLDivElement | null} */ (null));
  useEffect(() => sheet.current?.focus(), []);
  return html`<div class="sheet scroll" role="dialog" aria-label="Keys" aria-modal="true" tabindex="-1" ref=${sheet}>
    ${offered().filter((layer) => layer.keys.length && layer.name !== "overlay").reverse().map((layer) => html`<h2>${layer.name[0]?.toUpperCase()}${layer.name.slice(1)}</h2>
      <dl class="keys-list">${layer.keys.map((key) => html`<div><dt><kbd>${key.key}</kbd></dt><dd>${key.what}</dd></div>`)}</dl>`)}
  </div>`;
}
