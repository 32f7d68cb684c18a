/** What waits for the owner, and beside it what goes on. */
import { html, signal, useEffect, useState } from "../html.js";
import { figures, runs, topics } from "../feed.js";
import { offer } from "../keys.js";
import { decide, inbox, putAway, resume, wanted } from "../prompts.js";
import { PromptCard, deed } from "../parts/prompt.js";
import { RunRow, TopicRow } from "../parts/rows.js";
import { Mark } from "../parts/mark.js";
import { AskForNotices } from "../parts/notice.js";
import { PasskeyLink } from "../parts/passkey.js";
import { go, query, setQuery, to } from "../route.js";
import { firstLine, shortId, shown } from "../text.js";
import { Age } from "../time.js";

/** @typedef {import("../prompts.js").Waiting} Waiting */

const FILTERS = /** @type {[string, string[]][]} */ ([
  ["All", []], ["Permissions", ["permission"]], ["Questions", ["question", "input"]], ["Gate", ["gate"]], ["Failed", ["failed"]],
]);

const BARS = 24;
const current = signal("");
const selected = signal(/** @type {Set<string>} */ (new Set()));
const peeked = signal(/** @type {Set<string>} */ (new Set()));

/** @param {string} key */
function toggleOpen(key) {
  const next = query.value.get("open") === key ? null : key;
  if (next) peeked.value = new Set(peeked.value).add(next);
  current.value = key;
  setQuery("open", next);
}

/** @param {string} key */
function toggleSelected(key) {
  const next = new Set(selected.value);
  if (!next.delete(key)) next.add(key);
  selected.value = next;
}

function shownItems() {
  const filter = FILTERS.find(([name]) => name === query.value.get("show"))?.[1] ?? [];
  return inbox.value.filter((each) => !filter.length || filter.includes(each.kind));
}

/** @param {number} step */
function move(step) {
  const items = shownItems();
  const at = items.findIndex((each) => each.key === current.value);
  const next = items[Math.max(0, Math.min(items.length - 1, at + step))];
  if (!next) return;
  current.value = next.key;
  const row = document.getElementById(rowId(next.key));
  row?.scrollIntoView({ block: "nearest" });
  row?.querySelector("button")?.focus({ preventScroll: true });
}

/** @param {string} key */
const rowId = (key) => `waits-${btoa(unescape(encodeURIComponent(key))).replace(/[^A-Za-z0-9]/g, "-")}`;

export const inboxKeys = /** @type {[string, string][]} */ ([["j k", "move"], ["Enter", "open"], ["x", "select"], ["/", "search"], ["?", "keys"]]);

export function Inbox() {
  useEffect(
    () => offer("inbox", [
      { key: "j", what: "next", run: () => move(1) },
      { key: "k", what: "previous", run: () => move(-1) },
      { key: "ArrowDown", what: "next", run: () => move(1), shown: false },
      { key: "ArrowUp", what: "previous", run: () => move(-1), shown: false },
      { key: "Enter", what: "open or close", run: () => current.value && toggleOpen(current.value) },
      { key: "c", what: "start a run", run: () => go(`${to("runs")}?start=1`) },
      { key: "x", what: "select", run: () => current.value && toggleSelected(current.value) },
      { key: "Escape", what: "close", run: () => { setQuery("open", null); document.getElementById(rowId(current.value))?.querySelector("button")?.focus(); } },
    ]),
    [],
  );
  return html`<div class="split"><section aria-labelledby="waits-title">
      <${Head} /><div class="scroll"><${List} /></div><${Bulk} />
    </section><aside aria-label="What goes on"><${GoingOn} /></aside></div>`;
}

function Head() {
  const oldest = inbox.value.find((each) => !each.over);
  const show = query.value.get("show") ?? "All";
  return html`<header class="head">
    <h1 id="waits-title">Waits for you</h1>
    <span class="quiet" aria-live="polite">${wanted.value ? html`${wanted.value}, the oldest for <${Age} at=${oldest?.at} />` : "nothing"}</span>
    <${AskForNotices} />
    ${wanted.value > 0 && html`<div class="choice" role="group" aria-label="Show">${FILTERS.map(([name, kinds]) => {
      const count = inbox.value.filter((each) => kinds.includes(each.kind)).length;
      if (kinds.length && !count) return null;
      return html`<button aria-pressed=${show === name} onClick=${() => setQuery("show", name === "All" ? null : name)}>${name}${kinds.length ? ` ${count}` : ""}</button>`;
    })}</div>`}
  </header>`;
}

function List() {
  const items = shownItems();
  if (!items.length) return html`<${Empty} />`;
  return html`<ul class="waiting">${items.map((each) => html`<${Item} key=${each.key} item=${each} oldest=${each === items[0] && items.length > 1} />`)}</ul>`;
}

function Empty() {
  return html`<div class="empty"><h2>Nothing waits for you.</h2>
    <p>Permissions, questions and failed runs of every agent appear here, the oldest first, as soon as they wait.</p>
    <ul>
      <li><a class="button yes" href=${to("runs")}>Start a run</a></li>
      <li><code>stringd gate</code> in a terminal lets agents ask for commands</li>
      <li><code>string file:main /open README.md</code> opens a document in a topic</li>
    </ul></div>`;
}

/** @param {{ item: Waiting, oldest: boolean }} props */
function Item({ item, oldest }) {
  const open = query.value.get("open") === item.key;
  const classes = [open && "open", selected.value.has(item.key) && "selected", (open || current.value === item.key) && "current"].filter(Boolean).join(" ");
  const prompt = ["permission", "question", "input"].includes(item.kind);
  return html`<li id=${rowId(item.key)} class=${classes}>
    <input class="check" type="checkbox" aria-label="Select" disabled=${item.kind !== "permission" || Boolean(item.over)} checked=${selected.value.has(item.key)} onChange=${() => toggleSelected(item.key)} />
    <${Mark} of=${item.kind === "failed" ? "failed" : item.kind === "gate" ? "gate" : "waits"} />
    <span class="kind">${item.kind === "gate" ? (item.of.privileged ? "gate, root" : "gate") : item.kind}</span>
    <div class="what">${prompt
      ? html`<button aria-expanded=${open} onClick=${() => toggleOpen(item.key)}><${Title} item=${item} /></button>`
      : html`<${Title} item=${item} />`}
      <${Where} item=${item} /></div>
    <span class="age"><${Age} at=${item.at} />${oldest && html`<small>oldest</small>`}</span>
    ${open && prompt && html`<${PromptCard} of=${item.of} itemKey=${item.key} over=${item.over} opened />`}
  </li>`;
}

/** @param {{ item: Waiting }} props */
function Title({ item }) {
  const { kind, of } = item;
  if (kind === "permission") return html`<span><b>${shown(of.tool) || deed(of)}</b> <code>${shown(of.resource)}</code></span>`;
  if (kind === "gate") return html`<code>${of.stages.map((/** @type {string[]} */ stage) => stage.map(shown).join(" ")).join(" | ")}</code>`;
  if (kind === "failed") {
    const { step, words } = failureOf(of);
    return html`<span><b>${shown(of.strategyName)}</b> ${step && html`step <b>${shown(step)}</b>: `}${firstLine(words)}</span>`;
  }
  return html`<span>${shown(of.text) || "It wants your next words."}</span>`;
}

/** What failed where, in parts. @param {any} run */
function failureOf(run) {
  const [, code = "", rest = String(run.error ?? "")] = /^([A-Z_]+): ([^]*)$/.exec(run.error ?? "") ?? [];
  const [, step = "", words = rest] = /^Step "([^"]+)" failed: (?:LLM call failed: )?([^]*)$/.exec(rest) ?? [];
  return { code, step, words };
}

/** @param {{ runId: string }} props */
function Resume({ runId }) {
  const [failed, setFailed] = useState("");
  return html`<button class="button plain small" onClick=${() => resume(runId).catch((error) => setFailed(error.message))}>Resume</button>${failed && html`<span class="bad" role="alert">${shown(failed)}</span>`}`;
}

/** @param {{ item: Waiting }} props */
function Where({ item }) {
  const { kind, of } = item;
  if (kind === "gate")
    return html`<p class="quiet">${[shown(of.session), shown(of.program), of.reason && shown(of.reason)].filter(Boolean).join(": ")}</p>
      <p>Press <kbd>y</kbd> in the gate’s terminal to run it. <${PasskeyLink} at=${of.page} /></p>`;
  if (kind === "failed")
    return html`<p class="quiet failure"><span>${shown(failureOf(of).code)} in <a href=${to("run", of.runId)}>${shortId(of.runId)}</a></span><${Resume} runId=${of.runId} /><button class="button plain small" onClick=${() => putAway(of.runId)}>Put away</button></p>`;
  return html`<p class="quiet">${shown(of.agent)} in <a href=${to("run", of.runId)}>${shown(of.strategy)}</a> ${shortId(of.runId)}</p>`;
}

function Bulk() {
  const chosen = inbox.value.filter((each) => selected.value.has(each.key) && !each.over && each.kind === "permission");
  if (!chosen.length) return null;
  const seen = chosen.filter((each) => peeked.value.has(each.key)).length;
  const ready = seen === chosen.length;
  /** @param {import("../prompts.js").Decision} decision */
  const all = async (decision) => {
    await Promise.allSettled(chosen.map((each) => decide(each.of, decision)));
    selected.value = new Set();
  };
  return html`<div class="bulk" role="group" aria-label="Several at once"><b>${chosen.length} selected</b>
    <span class="quiet">${ready ? "" : `${seen} of ${chosen.length} peeked at. Open the other${chosen.length - seen > 1 ? "s" : ""} to answer all.`}</span>
    <span class="end">
      <button class="button" disabled=${!ready} onClick=${() => all("allow")}>Allow ${chosen.length} once</button>
      <button class="button" disabled=${!ready} onClick=${() => all("deny")}>Deny ${chosen.length}</button>
      <button class="button plain" onClick=${() => (selected.value = new Set())}>Clear</button>
    </span></div>`;
}

function GoingOn() {
  const known = [...runs.value.values()].reverse();
  const live = known.filter((each) => ["running", "pending"].includes(each.status));
  const all = [...topics.value.values()];
  const [shells, documents] = [all.filter((each) => each.type === "bash"), all.filter((each) => each.type !== "bash")];
  return html`<section class="section"><h2>Runs <span class="quiet">${live.length} live, ${known.length - live.length} ended</span><a class="end" href=${`${to("runs")}?start=1`}>Start one <kbd>c</kbd></a></h2>
      ${known.slice(0, 8).map((run) => html`<${RunRow} key=${run.runId} run=${run} />`)}</section>
    <section class="section"><h2>Topics <span class="quiet">${documents.length}, ${documents.filter((each) => each.executing).length} working</span></h2>
      ${recent(documents).map((topic) => html`<${TopicRow} key=${topic.user + topic.topic} topic=${topic} />`)}</section>
    <section class="section"><h2>Shells <span class="quiet">${shells.length}</span></h2>
      ${recent(shells).map((topic) => html`<${TopicRow} key=${topic.user + topic.topic} topic=${topic} />`)}</section>
    <section class="section"><h2>How the daemon is <a class="end" href=${to("health")}>Health</a></h2><${Figures} /></section>`;
}

/** @param {any[]} topics */
const recent = (topics) => topics.slice(-8).reverse();

function Figures() {
  const seen = figures.value.slice(-BARS);
  const last = seen.at(-1);
  if (!last) return null;
  const failures = seen.map((each, index) => Math.max(0, each.failedCommands - (seen[index - 1]?.failedCommands ?? each.failedCommands)));
  /** @type {[string, string, number[]][]} */
  const rows = [
    ["requests", `${last.requestsPerSecond} a second`, seen.map((each) => each.requestsPerSecond)],
    ["in queues", `${last.queued}`, seen.map((each) => each.queued)],
    ["memory", `${Math.round(last.memoryBytes / 1e6)} MB`, seen.map((each) => each.memoryBytes)],
    ["failed commands", `${failures.reduce((sum, each) => sum + each, 0)}`, failures],
  ];
  return html`<dl class="figures">${rows.map(([name, value, series]) => html`<div><dt>${name}</dt><dd>${value}</dd><${Bars} of=${series} /></div>`)}</dl>`;
}

/** @param {{ of: number[] }} props */
function Bars({ of: series }) {
  const most = Math.max(1, ...series);
  return html`<svg class="bars" viewBox="0 0 96 16" preserveAspectRatio="none" aria-hidden="true">${series.map((value, index) => {
    const height = Math.max(1, (value / most) * 16);
    return html`<rect x=${(BARS - series.length + index) * 4} y=${16 - height} width="3" height=${height} />`;
  })}</svg>`;
}
