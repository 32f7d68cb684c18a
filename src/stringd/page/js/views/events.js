/** What happened, everywhere or in one run: searched and filtered, the newest at the end. */
import { html, signal, useEffect, useLayoutEffect, useMemo, useRef, useState } from "../html.js";
import { RunLog, feedRow, folded } from "../event_rows.js";
import { events, runs } from "../feed.js";
import { offer } from "../keys.js";
import { Density } from "../parts/density.js";
import { Mark } from "../parts/mark.js";
import { query, setQuery, to } from "../route.js";
import { useReader } from "../run_reader.js";
import { shortId, shown } from "../text.js";
import { took } from "../time.js";

/** @typedef {import("../event_rows.js").Row} Row */
/** @typedef {import("../event_rows.js").Folded} Folded */

const ROW = 24;
const SLOW_MS = 1000;
const MOST_NAMES = 8;
const SPANS = /** @type {[string, number][]} */ ([["10 ms", 10], ["1 s", 1000], ["10 s", 10_000], ["1 min", 60_000]]);
const current = signal("");

export function Events() {
  const runId = query.value.get("run") ?? "";
  return runId ? html`<${OfRun} key=${runId} runId=${runId} />` : html`<${OfAll} />`;
}

function OfAll() {
  const rows = useMemo(() => events.value.map(feedRow), [events.value]);
  return html`<${Found} all=${rows} version=${rows.length} />`;
}

/** @param {{ runId: string }} props */
function OfRun({ runId }) {
  const { model, version, problem } = useReader(runId, () => new RunLog());
  if (problem) return html`<div class="empty"><h1>This run cannot be shown.</h1><p class="bad">${shown(problem)}</p><ul><li><a class="button yes" href=${to("events")}>All events</a></li></ul></div>`;
  return html`<${Found} all=${model.rows} version=${version} runId=${runId} />`;
}

/** What the address asks for. @returns {(row: Row) => boolean} */
function filter() {
  const words = (query.value.get("q") ?? "").toLowerCase().split(/\s+/).filter(Boolean);
  const [show, kind, agent, tool, over] = ["show", "kind", "agent", "tool", "over"].map((name) => query.value.get(name) ?? "");
  const least = Number(over);
  return (row) =>
    (!kind || row.kind === kind) && (!agent || row.agent === agent) && (!tool || row.tool === tool) && (!least || row.ms >= least) &&
    (show !== "failed" || row.mark === "failed" || row.ms >= SLOW_MS) && (show !== "prompts" || ["run.waiting", "run.resolved", "run.prompt", "gate.asked", "gate.decided"].includes(row.kind)) &&
    words.every((word) => `${row.kind} ${row.who} ${row.what} ${row.state} ${row.of.runId ?? ""}`.toLowerCase().includes(word));
}

/** @param {{ all: Row[], version: number, runId?: string }} props */
function Found({ all, version, runId = "" }) {
  const asked = query.value.toString();
  const unfolded = query.value.get("noise") === "shown";
  const rows = useMemo(() => all.filter(filter()), [all, version, asked]);
  const lines = useMemo(() => (unfolded ? rows : folded(rows)), [rows, unfolded]);
  const list = useRef(lines);
  list.current = lines;
  const whole = useRef(rows);
  whole.current = rows;
  const save = () => download(whole.current.map((row) => row.of), runId ? shortId(runId) : "events");
  useEffect(() => {
    const move = (/** @type {number} */ by) => {
      const at = list.current.findIndex((row) => row.id === current.value);
      const next = list.current[Math.max(0, Math.min(list.current.length - 1, (at < 0 ? list.current.length : at) + by))];
      if (next) current.value = next.id;
    };
    return offer("events", [
      { key: "j", what: "next", run: () => move(1) },
      { key: "k", what: "previous", run: () => move(-1) },
      { key: "ArrowDown", what: "next", run: () => move(1), shown: false },
      { key: "ArrowUp", what: "previous", run: () => move(-1), shown: false },
      { key: "f", what: "failed only", run: () => setQuery("show", query.value.get("show") === "failed" ? null : "failed") },
      { key: "u", what: "fold or show noise", run: () => setQuery("noise", query.value.get("noise") ? null : "shown") },
      { key: "d", what: "download", run: save },
    ]);
  }, [runId]);
  const show = query.value.get("show") ?? "";
  const chosen = lines.find((row) => row.id === current.value);
  return html`<div class="filters">
      ${runId && html`<button class="chip" onClick=${() => setQuery("run", null)} aria-label="Show the events of everything">run:${shortId(runId)} ×</button>`}
      <input class="field" type="search" placeholder=${runId ? `Search what ${runs.value.get(runId)?.strategyName ?? "the run"} did` : "Search what happened"} aria-label="Search events" value=${query.value.get("q") ?? ""} onInput=${(/** @type {any} */ e) => setQuery("q", e.target.value)} />
      <span class="quiet">${rows.length} of ${all.length} events</span>
      <div class="choice" role="group" aria-label="Show">${[["", "All"], ["failed", "Failed or slow"], ["prompts", "Prompts"]].map(([key, name]) => html`<button aria-pressed=${show === key} onClick=${() => setQuery("show", key ?? null)}>${name}</button>`)}</div>
      ${runId ? html`<a class="button" href=${`/runs/${encodeURIComponent(runId)}/events.jsonl`} download=${`${shortId(runId)}.jsonl`} target="_blank">Download JSONL</a>` : html`<button class="button" onClick=${save}>Download JSONL</button>`}</div>
    <${Facets} all=${all} version=${version} />
    <div class="split narrow"><section aria-label="Events"><${List} rows=${lines} /></section><aside aria-label="Event" tabindex="0">${chosen ? ("noise" in chosen && Array.isArray(chosen.noise) ? html`<${Noise} of=${chosen} />` : html`<${Detail} row=${chosen} runId=${runId} />`) : html`<p class="quiet pad">Choose an event to read it whole.</p>`}</aside></div>`;
}

/** @param {any[]} records @param {string} name */
function download(records, name) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([records.map((each) => `${JSON.stringify(each)}\n`).join("")], { type: "application/x-ndjson" }));
  link.download = `${name}.jsonl`;
  link.target = "_blank";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** Names with their counts, as lines of text. @param {{ all: Row[], version: number }} props */
function Facets({ all, version }) {
  const counts = useMemo(() => {
    const found = { agent: new Map(), tool: new Map(), kind: new Map(), over: new Map(SPANS.map(([, ms]) => [String(ms), 0])) };
    for (const row of all) {
      if (row.noise && row.noise !== "beginning") continue;
      for (const name of /** @type {const} */ (["agent", "tool", "kind"])) if (row[name]) found[name].set(row[name], (found[name].get(row[name]) ?? 0) + 1);
      for (const [, ms] of SPANS) if (row.ms >= ms) found.over.set(String(ms), (found.over.get(String(ms)) ?? 0) + 1);
    }
    return found;
  }, [all, version]);
  /** @type {[string, string, [string, string, number][]][]} */
  const lines = [
    ["agent", "agent", named(counts.agent)], ["tool", "tool", named(counts.tool)], ["kind", "kind", named(counts.kind)],
    ["over", "took over", SPANS.map(([word, ms]) => /** @type {[string, string, number]} */ ([String(ms), word, counts.over.get(String(ms)) ?? 0])).filter(([, , count]) => count)],
  ];
  return html`<dl class="facets">${lines.filter(([, , names]) => names.length).map(([key, word, names]) => html`<div><dt class="quiet">${word}</dt><dd>${names.slice(0, MOST_NAMES * 2).map(([value, name, count]) => html`<button aria-pressed=${query.value.get(key) === value} onClick=${() => setQuery(key, query.value.get(key) === value ? null : value)}>${name} <span class="quiet">${count}</span></button>`)}${names.length > MOST_NAMES * 2 && html`<span class="quiet">${names.length - MOST_NAMES * 2} more</span>`}</dd></div>`)}</dl>`;
}

/** @param {Map<string, number>} counts @returns {[string, string, number][]} */
const named = (counts) => [...counts].sort((a, b) => b[1] - a[1]).map(([name, count]) => [name, shown(name), count]);

/** @param {number} size */
const sized = (size) => (!size ? "" : size < 1000 ? `${size} B` : size < 1e6 ? `${(size / 1000).toFixed(1)} KB` : `${(size / 1e6).toFixed(1)} MB`);

/** Rows of one height, of which only those in view are made. @param {{ rows: (Row | Folded)[] }} props */
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
  }, [rows.length > 0]);
  useLayoutEffect(() => {
    if (box.current && follows.current) box.current.scrollTop = rows.length * ROW;
  }, [rows.length]);
  const at = current.value;
  useLayoutEffect(() => {
    const [place, row] = [box.current, rows.findIndex((each) => each.id === at)];
    if (!place || row < 0) return;
    if (row * ROW < place.scrollTop) place.scrollTop = row * ROW;
    else if ((row + 1) * ROW > place.scrollTop + place.clientHeight) place.scrollTop = (row + 1) * ROW - place.clientHeight;
  }, [at]);
  if (!rows.length) return html`<div class="empty"><h2>Nothing of that kind.</h2><p>The daemon keeps its last 10,000 events for this list. <code>stringd watch</code> shows them in a terminal.</p></div>`;
  const first = Math.max(0, Math.floor(top / ROW) - 10);
  const last = Math.min(rows.length, first + Math.ceil(height / ROW) + 20);
  return html`<div class="event heading" aria-hidden="true"><span>time</span><span>state</span><span>kind</span><span>who</span><span>what</span><span class="figure">size</span><span class="figure">took</span></div>
    <div class="event-list"><div class="scroll events" tabindex="0" role="grid" aria-label="Events" aria-rowcount=${rows.length} ref=${box} onScroll=${(/** @type {any} */ e) => { setTop(e.target.scrollTop); follows.current = e.target.scrollHeight - e.target.scrollTop - e.target.clientHeight < ROW * 2; }}>
    <svg class="space" width="1" height=${first * ROW} aria-hidden="true"></svg>
    ${rows.slice(first, last).map((row, index) => "words" in row
      ? html`<div key=${row.id} role="row" aria-rowindex=${first + index + 1} class=${`event folded-noise${row.id === at ? " chosen" : ""}`} onClick=${() => (current.value = row.id)}><span role="gridcell" class="figure">${row.ms >= 1000 ? took(row.ms) : ""}</span><span role="gridcell" class="cut">${row.words}</span></div>`
      : html`<div key=${row.id} role="row" aria-rowindex=${first + index + 1} class=${`event${row.id === at ? " chosen" : ""}`} onClick=${() => (current.value = row.id)}>
        <span role="gridcell"><time title=${new Date(row.ts).toLocaleString()}>${row.ts.slice(11, 19)}<span class="fine">${row.ts.slice(19, 23)}</span></time></span><span role="gridcell" class=${row.mark === "failed" ? "bad" : row.mark === "waits" ? "you" : ""}><${Mark} of=${row.mark} /> ${row.state}</span><span role="gridcell" class="cut">${row.kind}</span><span role="gridcell" class="cut">${row.who}</span><span role="gridcell" class="cut mono">${row.what}</span><span role="gridcell" class="figure">${sized(row.size)}</span><span role="gridcell" class="figure">${row.ms ? took(row.ms) : ""}</span></div>`)}
    <svg class="space" width="1" height=${(rows.length - last) * ROW} aria-hidden="true"></svg></div>
    <${Density} rows=${rows} height=${height} from=${top / ROW} to=${Math.min(rows.length, (top + height) / ROW)} jump=${(/** @type {number} */ row) => { if (box.current) box.current.scrollTop = row * ROW - height / 2; }} /></div>`;
}

/** @param {{ of: Folded }} props */
function Noise({ of }) {
  return html`<section class="section"><h2>${of.words}</h2><p class="pad quiet">Nobody reads these one by one. <button class="button" onClick=${() => setQuery("noise", "shown")}>Show all of them <kbd>u</kbd></button></p></section>`;
}

/** @param {{ row: Row, runId: string }} props */
function Detail({ row, runId }) {
  const [raw, setRaw] = useState(false);
  const event = row.of;
  const run = runId || event.runId || "";
  const link = run ? `${to("run", run)}${row.agent ? `?agent=${encodeURIComponent(row.agent)}` : ""}` : event.topic ? to("topic", event.user, event.topic) : "";
  const [args, result] = [event.event?.args, row.then?.event?.output ?? row.then?.result?.text];
  const facts = args !== undefined ? [["agent", row.agent], ["tool", row.tool], ["state", row.state], ["from", row.ts.slice(11, 23)], ["took", took(row.ms)]] : Object.entries(event).filter(([name, value]) => name !== "kind" && value !== "" && value !== null);
  return html`<section class="section"><h2>${row.kind} <span class="quiet">${shown(row.id.replace(/^.*-/, ""))}</span><div class="choice end" role="group" aria-label="As">${[[false, "Read"], [true, "JSON"]].map(([key, name]) => html`<button aria-pressed=${raw === key} onClick=${() => setRaw(Boolean(key))}>${name}</button>`)}</div></h2>
    ${raw ? html`<pre class="pad mono" tabindex="0">${shown(JSON.stringify(row.then ? [event, row.then] : event, null, 2))}</pre>` : html`<dl class="arguments pad">${facts.map(([name, value]) => html`<dt>${shown(name)}</dt><dd class=${value === "failed" ? "bad" : "mono"}>${shown(typeof value === "object" ? JSON.stringify(value) : value)}</dd>`)}</dl>
      ${args !== undefined && html`<h3 class="pad">Arguments</h3><pre class="pad mono">${shown(args)}</pre>`}
      ${result !== undefined && html`<h3 class="pad">Result <span class="quiet">${sized(String(result).length)}</span></h3><pre class="pad mono" tabindex="0">${shown(String(result).slice(0, 20_000))}</pre>`}`}
    ${link && html`<p class="pad"><a class="button" href=${link}>${run ? "Open the run" : "Open the topic"}</a> ${run && !runId && html`<a class="button" href=${`${to("events")}?run=${encodeURIComponent(run)}`}>Events of the run</a>`}</p>`}</section>`;
}
