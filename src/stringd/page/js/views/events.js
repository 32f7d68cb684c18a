/** What happened, searched and filtered; the newest at the end. */
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { events } from "../feed.js";
import { offer } from "../keys.js";
import { Mark } from "../parts/mark.js";
import { query, setQuery, to } from "../route.js";
import { firstLine, shortId, shown } from "../text.js";
import { took } from "../time.js";

/** @typedef {import("../feed.js").FeedEvent} FeedEvent */

const ROW = 24;
const current = signal("");

export const eventsKeys = /** @type {[string, string][]} */ ([["j k", "move"], ["f", "failed only"], ["d", "download"], ["?", "keys"]]);

/** @param {FeedEvent} event @returns {[import("../parts/mark.js").MarkName, string]} */
function state(event) {
  switch (event.kind) {
    case "topic.done": return event.ok ? ["done", "done"] : ["failed", "failed"];
    case "topic.executing": return ["working", "began"];
    case "run.waiting": return ["waits", "waits"];
    case "run.resolved": return String(event.answer).startsWith("deny") ? ["denied", "denied"] : event.answer ? ["done", "answered"] : ["stopped", "not answered"];
    case "run.state": return event.status === "error" ? ["failed", "failed"] : event.status === "completed" ? ["done", "done"] : event.status === "running" ? ["working", "began"] : event.status === "pending" ? ["next", "ready"] : ["stopped", event.status === "deleted" ? "deleted" : "stopped"];
    case "run.step": return event.state === "started" ? ["working", "began"] : ["done", "done"];
    case "gate.asked": return ["gate", "asked"];
    case "gate.decided": return event.decision === "approved" ? ["done", "approved"] : event.decision === "denied" ? ["denied", "denied"] : ["stopped", "nobody"];
    case "gate.ended": return event.how === "finished" && event.exitCodes.every((/** @type {number} */ code) => code === 0) ? ["done", "done"] : ["failed", event.how];
    default: return ["idle", ""];
  }
}

/** @param {FeedEvent} event */
const who = (event) => event.agent ?? event.topic ?? event.strategy ?? event.session ?? "";

/** @param {FeedEvent} event */
function what(event) {
  switch (event.kind) {
    case "topic.done":
    case "topic.executing": return firstLine(`${event.command}${event.code ? `  ${event.code}` : ""}`);
    case "run.state": return firstLine(`${shortId(event.runId)} ${event.error || event.result || event.status}`);
    case "run.step": return firstLine(`${shortId(event.runId)} ${event.step}`);
    case "run.waiting": return firstLine(event.text || `${event.tool} ${event.resource}`);
    case "run.resolved": return firstLine(`${event.answer || "nobody answered"}${event.by ? ` by ${event.by}` : ""}`);
    case "gate.asked": return firstLine(event.stages.map((/** @type {string[]} */ stage) => stage.join(" ")).join(" | "));
    case "gate.decided": return firstLine(`${event.decision} ${event.note}`);
    case "gate.ended": return firstLine(`${event.how} ${event.exitCodes.join(" ")} ${event.message}`);
    case "feed.missed": return event.why === "restarted" ? "the daemon was started again" : `${event.count} events were missed`;
    default: return "";
  }
}

/** @param {FeedEvent} event */
const failed = (event) => state(event)[0] === "failed";
/** @param {FeedEvent} event */
const prompts = (event) => ["run.waiting", "run.resolved", "gate.asked", "gate.decided"].includes(event.kind);
/** @param {FeedEvent} event */
const slow = (event) => (event.ms ?? 0) >= 1000;

function found() {
  const words = (query.value.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const show = query.value.get("show") ?? "";
  const kind = query.value.get("kind") ?? "";
  return events.value.filter((event) =>
    (!kind || event.kind === kind) && (show !== "failed" || failed(event) || slow(event)) && (show !== "prompts" || prompts(event)) &&
    words.every((word) => `${event.kind} ${who(event)} ${what(event)} ${event.runId ?? ""}`.toLowerCase().includes(word)));
}

function download() {
  const lines = found().map((event) => JSON.stringify(event)).join("\n");
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([lines, "\n"], { type: "application/x-ndjson" }));
  link.download = "events.jsonl";
  link.target = "_blank";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

export function Events() {
  const rows = found();
  const list = useRef(rows);
  list.current = rows;
  useEffect(() => {
    const move = (/** @type {number} */ by) => {
      const at = list.current.findIndex((event) => event.id === current.value);
      const next = list.current[Math.max(0, Math.min(list.current.length - 1, (at < 0 ? list.current.length : at) + by))];
      if (next) current.value = next.id;
    };
    return offer("events", [
      { key: "j", what: "next", run: () => move(1) },
      { key: "k", what: "previous", run: () => move(-1) },
      { key: "f", what: "failed only", run: () => setQuery("show", query.value.get("show") === "failed" ? null : "failed") },
      { key: "d", what: "download", run: download },
    ]);
  }, []);
  const chosen = events.value.find((event) => event.id === current.value);
  /** @type {Map<string, number>} */
  const kinds = new Map();
  for (const event of events.value) kinds.set(event.kind, (kinds.get(event.kind) ?? 0) + 1);
  const show = query.value.get("show") ?? "";
  return html`<div class="filters"><input class="field" type="search" placeholder="Search what happened" aria-label="Search events" value=${query.value.get("q") ?? ""} onInput=${(/** @type {any} */ e) => setQuery("q", e.target.value)} />
      <span class="quiet">${rows.length} of ${events.value.length} events</span>
      <div class="choice" role="group" aria-label="Show">${[["", "All"], ["failed", "Failed or slow"], ["prompts", "Prompts"]].map(([key, name]) => html`<button aria-pressed=${show === key} onClick=${() => setQuery("show", key ?? null)}>${name}</button>`)}</div>
      <button class="button" onClick=${download}>Download JSONL</button></div>
    <p class="facets"><span class="quiet">kind</span>${[...kinds].map(([kind, count]) => html`<button aria-pressed=${query.value.get("kind") === kind} onClick=${() => setQuery("kind", query.value.get("kind") === kind ? null : kind)}>${kind} <span class="quiet">${count}</span></button>`)}</p>
    <div class="split narrow"><section aria-label="Events"><${List} rows=${rows} /></section><aside aria-label="Event">${chosen ? html`<${Detail} event=${chosen} />` : html`<p class="quiet pad">Choose an event to read it whole.</p>`}</aside></div>`;
}

/** Rows of one height, of which only those in view are made. @param {{ rows: FeedEvent[] }} props */
function List({ rows }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [top, setTop] = useState(0);
  const [height, setHeight] = useState(800);
  const follows = useRef(true);
  useLayoutEffect(() => {
    const place = box.current;
    if (!place) return undefined;
    const watch = new ResizeObserver(() => setHeight(place.clientHeight));
    watch.observe(place);
    return () => watch.disconnect();
  }, []);
  useLayoutEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = rows.length * ROW;
  }, [rows.length]);
  if (!rows.length) return html`<div class="empty"><h2>Nothing of that kind.</h2><p>The daemon keeps its last 10,000 events for this list. <code>stringd watch</code> shows them in a terminal.</p></div>`;
  const first = Math.max(0, Math.floor(top / ROW) - 10);
  const last = Math.min(rows.length, first + Math.ceil(height / ROW) + 20);
  return html`<div class="scroll events" tabindex="0" role="grid" aria-label="Events" aria-rowcount=${rows.length} ref=${box} onScroll=${(/** @type {any} */ e) => { setTop(e.target.scrollTop); follows.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < ROW * 2; }}>
    <svg class="space" width="1" height=${first * ROW} aria-hidden="true"></svg>
    ${rows.slice(first, last).map((event, index) => {
      const [mark, word] = state(event);
      return html`<div key=${event.id} role="row" aria-rowindex=${first + index + 1} class=${`event${event.id === current.value ? " chosen" : ""}`} onClick=${() => (current.value = event.id)}>
        <span role="gridcell"><time>${event.ts.slice(11, 19)}<span class="fine">${event.ts.slice(19, 23)}</span></time></span><span role="gridcell" class=${mark === "failed" ? "bad" : mark === "waits" ? "you" : ""}><${Mark} of=${mark} /> ${word}</span><span role="gridcell" class="cut">${event.kind}</span><span role="gridcell" class="cut">${shown(who(event))}</span><span role="gridcell" class="cut mono">${what(event)}</span><span role="gridcell" class="figure">${event.ms ? took(event.ms) : ""}</span></div>`;
    })}
    <svg class="space" width="1" height=${(rows.length - last) * ROW} aria-hidden="true"></svg></div>`;
}

/** @param {{ event: FeedEvent }} props */
function Detail({ event }) {
  const link = event.runId ? to("run", event.runId) : event.topic ? to("topic", event.user, event.topic) : "";
  return html`<section class="section"><h2>${event.kind}</h2><dl class="arguments pad">${Object.entries(event).filter(([name, value]) => name !== "kind" && value !== "" && value !== null).map(([name, value]) => html`<dt>${name}</dt><dd class="mono">${shown(typeof value === "object" ? JSON.stringify(value) : value)}</dd>`)}</dl>
    ${link && html`<p class="pad"><a class="button" href=${link}>${event.runId ? "Open the run" : "Open the topic"}</a></p>`}</section>`;
}
