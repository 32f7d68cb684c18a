/** Every run, and a form that starts one. */
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { listen, runs as live } from "../feed.js";
import { offer } from "../keys.js";
import { listKeys, rowId } from "../list_keys.js";
import { Mark, runState } from "../parts/mark.js";
import { promptsOf } from "../parts/rows.js";
import { go, query, setQuery, to } from "../route.js";
import { ask, tell } from "../runs_socket.js";
import { comparing } from "../comparing.js";
import { tokens } from "../parts/tree.js";
import { costShown, takenBy } from "../prices.js";
import { firstLine, shortId, shown } from "../text.js";
import { Age, clock, now } from "../time.js";

const stored = signal(/** @type {any[]} */ ([]));
const failure = signal("");
/** Runs ticked to be compared, at most two, the latest last. */
const ticked = signal(/** @type {string[]} */ ([]));

/** @param {string} runId */
function tick(runId) {
  ticked.value = ticked.value.includes(runId) ? ticked.value.filter((each) => each !== runId) : [...ticked.value, runId].slice(-2);
}

function Ticked() {
  const [a, b] = ticked.value;
  if (!a) return null;
  return html`<div class="bulk" role="group" aria-label="Compare"><b>${ticked.value.length} selected</b><span class="quiet">${b ? "" : "Tick another one to compare the two."}</span>
    <span class="end"><button class="button" disabled=${!b} onClick=${() => b && go(comparing(a, b))}>Compare</button><button class="button plain" onClick=${() => (ticked.value = [])}>Clear</button></span></div>`;
}
const FILTERS = /** @type {[string, (run: any) => boolean][]} */ ([
  ["All", () => true],
  ["Live", (run) => ["running", "pending"].includes(run.status)],
  ["Waits", (run) => promptsOf(run.runId).length > 0],
  ["Failed", (run) => run.status === "error"],
  ["Can resume", (run) => ["error", "cancelled", "interrupted"].includes(run.status)],
  ["Done", (run) => run.status === "completed"],
]);
const SHOWN = 200;

async function look() {
  try {
    stored.value = (await ask({ type: "list_runs", details: true })).runs;
    failure.value = "";
  } catch (error) {
    failure.value = error instanceof Error ? error.message : String(error);
  }
}

let soon = 0;

/** Many steps end at once; one look a second tells what they took. */
function lookSoon() {
  soon ||= setTimeout(() => { soon = 0; look(); }, 1000);
}

export const runsKeys = /** @type {[string, string][]} */ ([["j k", "move"], ["Enter", "open"], ["x", "select two to compare"], ["c", "start"], ["?", "keys"]]);

const current = signal("");

/** Go to the form. */
const begin = () => document.getElementById("start-input")?.focus();

export function Runs() {
  const listed = useRef(/** @type {any[]} */ ([]));
  useEffect(() => {
    look();
    if (query.value.get("start")) {
      setQuery("start", null);
      begin();
    }
    const quiet = listen((event) => ((event.kind === "run.state" && event.status !== "running") || (event.kind === "run.step" && event.state === "completed")) && lookSoon());
    const keys = offer("runs", [
      ...listKeys(current, () => listed.current, (run) => run.runId, (run) => go(to("run", run.runId))),
      { key: "x", what: "select two to compare", run: () => current.value && tick(current.value) },
      { key: "v", what: "compare the selected two", run: () => { const [a, b] = ticked.value; if (a && b) go(comparing(a, b)); } },
      { key: "c", what: "start a run", run: begin },
    ]);
    return () => { quiet(); keys(); clearTimeout(soon); soon = 0; };
  }, []);
  const known = new Map(stored.value.map((run) => [run.runId, run]));
  for (const run of live.value.values()) known.set(run.runId, { ...known.get(run.runId), ...run });
  const wanted = (query.value.get("q") ?? "").toLowerCase();
  const show = query.value.get("show") ?? "All";
  const fits = FILTERS.find(([name]) => name === show)?.[1] ?? (() => true);
  const all = [...known.values()].sort((a, b) => (a.startedAt < b.startedAt ? 1 : -1));
  const found = all.filter((run) => fits(run) && (!wanted || `${run.strategyName} ${run.runId} ${run.cwd ?? ""} ${run.error ?? ""}`.toLowerCase().includes(wanted)));
  listed.current = found.slice(0, SHOWN);
  return html`<div class="split start-beside"><section aria-labelledby="runs-title">
      <header class="head"><h1 id="runs-title">Runs</h1><span class="quiet">${all.length}</span>
        <input class="field" type="search" placeholder="Filter by name, id, folder" aria-label="Filter runs" value=${query.value.get("q") ?? ""} onInput=${(/** @type {any} */ e) => setQuery("q", e.target.value)} />
        <div class="choice" role="group" aria-label="Show">${FILTERS.map(([name, test]) => html`<button aria-pressed=${show === name} onClick=${() => setQuery("show", name === "All" ? null : name)}>${name} ${all.filter(test).length}</button>`)}</div></header>
      ${failure.value && html`<p class="bad pad" role="alert">${shown(failure.value)}</p>`}
      <div class="scroll">${found.length ? html`<${Table} runs=${found.slice(0, SHOWN)} />` : html`<${Empty} filtered=${all.length > 0} />`}
        ${found.length > SHOWN && html`<p class="quiet pad">${found.length - SHOWN} older ones are not shown; filter to find them.</p>`}</div>
      <${Ticked} />
    </section><aside aria-label="Start a run"><${Start} /></aside></div>`;
}

/** @param {{ filtered: boolean }} props */
function Empty({ filtered }) {
  return html`<div class="empty"><h2>${filtered ? "No run is like that." : "No run yet."}</h2><p>${filtered ? "Another filter may find it." : "A run is a strategy at work: agents that take steps, ask you, and leave a record that survives a crash."}</p>
    ${!filtered && html`<ul><li>Choose a strategy at the right, or type <code>stringd run hello</code></li></ul>`}</div>`;
}

/** @param {{ runs: any[] }} props */
function Table({ runs }) {
  return html`<table class="table runs-table"><thead><tr><th class="wide"><span class="only-read">compare</span></th><th>state</th><th>run</th><th class="wide roomy">folder</th><th class="wide">last</th><th class="figure began">began</th><th class="figure">took</th><th class="wide figure">tokens</th><th class="wide figure">cost</th></tr></thead>
    <tbody>${runs.map((run) => html`<${RunTr} key=${run.runId} run=${run} ticked=${ticked.value.includes(run.runId)} />`)}</tbody></table>`;
}

/** @param {any} run */
const ended = (run) => !["pending", "running"].includes(run.status);

/** Drawn again only when its run changed. @param {{ run: any, ticked: boolean }} props */
function RunTr({ run, ticked: chosen }) {
  const asked = promptsOf(run.runId);
  const [mark, word] = runState(run.status, asked.length > 0);
  const end = run.completedAt ? Date.parse(run.completedAt) : now.value;
  const taken = takenBy(run);
  return html`<tr id=${rowId(run.runId)} class=${current.value === run.runId ? "current" : ""} onClick=${() => go(to("run", run.runId))}>
    <td class="wide"><input class="check" type="checkbox" aria-label=${`Compare ${shortId(run.runId)}`} checked=${chosen} onClick=${(/** @type {Event} */ e) => e.stopPropagation()} onChange=${() => tick(run.runId)} /></td>
    <td class="state"><${Mark} of=${mark} /> <span class=${mark === "failed" ? "bad" : mark === "waits" ? "you" : ""}>${word}</span></td>
    <td class="cut"><a href=${to("run", run.runId)}><b>${shown(run.strategyName)}</b></a> <span class="quiet">${shortId(run.runId)}</span></td>
    <td class="wide roomy mono cut">${shown(run.cwd ?? "").replace(/^.*(?=\/[^/]+\/[^/]+$)/, "…")}</td>
    <td class="wide cut quiet">${run.damage ? html`<span class="bad">${shown(run.damage)}</span>` : asked[0] ? html`${shown(asked[0].agent)}: ${asked[0].prompt === "permission" ? html`<code>${firstLine(`${asked[0].tool} ${asked[0].resource}`)}</code>` : firstLine(asked[0].text || "wants your next words")}` : firstLine(run.error || run.result || (ended(run) ? run.last : run.step || run.last) || "")}</td>
    <td class="figure began"><${Age} at=${run.startedAt} /></td><td class="figure">${clock(end - Date.parse(run.startedAt))}</td>
    <td class="wide figure">${taken.tokens ? tokens(taken.tokens) : ""}</td><td class="wide figure">${costShown(taken.cost) ?? "–"}</td></tr>`;
}

/** Where a strategy was found. */
const ORIGINS = /** @type {Record<string, string>} */ ({
  cwd: "this folder", "cwd-project": "this folder", "cwd-root-project": "this folder", data: "data directory", "data-project": "data directory", "hub-package": "package", bundled: "comes with stringd",
});

/** What a run may use at most: its name on the wire, for people, the least. @type {[string, string, string][]} */
const LIMITS = [["tokens", "Tokens", "1"], ["cost", "US dollars", "0.01"], ["toolCalls", "Tool calls", "1"], ["minutes", "Minutes", "1"]];

/** @param {Record<string, string>} typed */
function budgetOf(typed) {
  const given = Object.entries(typed).filter(([, value]) => value !== "").map(([key, value]) => (key === "minutes" ? ["seconds", Number(value) * 60] : [key, Number(value)]));
  return given.length ? { budget: Object.fromEntries(given) } : {};
}

function Start() {
  const [offers, setOffers] = useState(/** @type {any[]} */ ([]));
  const [warnings, setWarnings] = useState(/** @type {any[]} */ ([]));
  const [path, setPath] = useState("");
  const [input, setInput] = useState("");
  const [folder, setFolder] = useState(localStorage.getItem("folder") ?? "");
  const [model, setModel] = useState("");
  const [limits, setLimits] = useState(/** @type {Record<string, string>} */ ({}));
  const [failed, setFailed] = useState("");
  const [starting, setStarting] = useState(false);
  useEffect(() => {
    let current = true;
    ask({ type: "discover_strategies", ...(folder ? { cwd: folder } : {}) }).then((found) => {
      if (!current) return;
      setOffers(found.strategies);
      setWarnings(found.warnings);
      setFailed("");
    }).catch((error) => current && setFailed(error.message));
    return () => { current = false; };
  }, [folder]);
  const chosen = offers.find((each) => each.path === path) ?? offers[0];
  /** @param {Event} event */
  const start = async (event) => {
    event.preventDefault();
    if (!chosen || starting) return;
    setStarting(true);
    setFailed("");
    try {
      const prepared = await ask({
        type: "prepare_run", strategyPath: chosen.path, ...(folder ? { cwd: folder } : {}), ...(chosen.manifestPath ? { manifestPath: chosen.manifestPath } : {}),
        ...(model ? { modelOverride: model } : {}), ...budgetOf(limits),
      });
      await tell({ type: "start_run", runId: prepared.runId, input });
      go(to("run", prepared.runId ?? ""));
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    } finally {
      setStarting(false);
    }
  };
  return html`<form class="start" onSubmit=${start}><h2>Start a run</h2>
    <div class="strategies" role="radiogroup" aria-label="Strategy">${offers.map((each) => html`<label key=${each.path} class=${each === chosen ? "chosen" : ""}><input class="only-read" type="radio" name="strategy" value=${each.path} checked=${each === chosen} onChange=${() => setPath(each.path)} /><b class="cut">${shown(each.label || each.name)}</b><span class="quiet cut">${ORIGINS[each.origin] ?? shown(each.origin)}</span>${each.description && html`<span class="quiet says">${shown(each.description)}</span>`}</label>`)}</div>
    <label>Folder<input class="field" placeholder="where the daemon was started" value=${folder} onChange=${(/** @type {any} */ e) => { setFolder(e.target.value.trim()); localStorage.setItem("folder", e.target.value.trim()); }} /></label>
    <label>Input<textarea id="start-input" class="field" rows="5" onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) start(e); }} placeholder="What shall it do?" value=${input} onInput=${(/** @type {any} */ e) => setInput(e.target.value)}></textarea></label>
    <details class="more"><summary>Model and limits</summary>
      <label>Model<input class="field" placeholder="as the strategy says" value=${model} onInput=${(/** @type {any} */ e) => setModel(e.target.value.trim())} /></label>
      <div class="limits" role="group" aria-label="At most">${LIMITS.map(([key, name, step]) => html`<label key=${key}>${name}<input class="field" type="number" min=${step} step=${step === "0.01" ? "any" : step} placeholder="no limit" value=${limits[key] ?? ""} onInput=${(/** @type {any} */ e) => setLimits({ ...limits, [key]: e.target.value })} /></label>`)}</div></details>
    <p><button class="button yes" disabled=${!chosen || starting}>${starting ? "Starting" : "Start"} <kbd>Ctrl Enter</kbd></button></p>
    ${failed && html`<p class="bad" role="alert">${shown(failed)}</p>`}
    ${warnings.map((each) => html`<p class="quiet"><code>${shown(each.path)}</code>: ${shown(each.reason)}</p>`)}</form>`;
}
