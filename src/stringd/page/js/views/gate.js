/** The gate: what waits at its terminal, and its log with the chain checked. Nothing here can press the key. */
import { html, signal, useEffect, useState } from "../html.js";
import { gate, listen } from "../feed.js";
import { offer } from "../keys.js";
import { Mark } from "../parts/mark.js";
import { PasskeyLink } from "../parts/passkey.js";
import { query, setQuery } from "../route.js";
import { shown } from "../text.js";
import { Age, now, span, took } from "../time.js";

/** @typedef {{ path: string, records: (any | null)[], count: number, broken: { line: number, why: string } | null }} Audit */

const audit = signal(/** @type {Audit | null} */ (null));
const checked = signal(0);
const failure = signal("");

async function check() {
  try {
    const answer = await fetch("/gate/audit?limit=1000");
    const said = await answer.json();
    if (!answer.ok) throw new Error(said.error);
    audit.value = said;
    checked.value = Date.now();
    failure.value = "";
  } catch (error) {
    failure.value = error instanceof Error ? error.message : String(error);
  }
}

const FILTERS = /** @type {[string, (row: Row) => boolean][]} */ ([
  ["All", () => true],
  ["Approved", (row) => row.what === "approved"],
  ["Denied", (row) => row.what === "denied"],
  ["Nobody", (row) => row.what === "nobody answered"],
  ["Refused", (row) => row.what === "refused unasked"],
]);

export function Gate() {
  useEffect(() => {
    check();
    const quiet = listen((event) => event.kind.startsWith("gate.") && check());
    const keys = offer("gate", [{ key: "v", what: "check the chain", run: check }]);
    return () => { quiet(); keys(); };
  }, []);
  const waiting = [...gate.value.values()];
  return html`<div class="scroll gate-view">
    <header class="head"><${Mark} of="gate" past=${!waiting.length} /><h1>${waiting.length ? `${waiting.length} request${waiting.length > 1 ? "s wait" : " waits"}` : "Nothing waits at the gate"}</h1><span class="quiet">view only: this page cannot press the key</span></header>
    ${waiting.map((each) => html`<${Request} key=${each.requestId} of=${each} />`)}
    ${failure.value && html`<p class="bad pad" role="alert">${shown(failure.value)}</p>`}
    <${Chain} /><${Log} /></div>`;
}

/** @param {string[][]} stages */
const line = (stages) => stages.map((stage) => stage.map(shown).join(" ")).join(" | ");

/** @param {{ of: any }} props */
function Request({ of }) {
  return html`<article class="card gate-card"><div class="card-body"><p><span class="quiet">${of.privileged ? "as root" : "as you"}</span> <code class="large">${line(of.stages)}</code></p>
    <dl class="arguments"><dt>From</dt><dd>${shown(of.session) || "somebody"}</dd><dt>Program</dt><dd class="mono">${shown(of.program)}</dd><dt>In</dt><dd class="mono">${shown(of.cwd)}</dd><dt>Reason</dt><dd>${shown(of.reason)}</dd><dt>Waits</dt><dd><${Age} at=${of.ts} /></dd></dl>
    <p>Press <kbd>y</kbd> in the gate’s terminal to run it; any other key denies. <${PasskeyLink} at=${of.page} /> <span class="quiet">Without an answer the caller is told that nobody answered, which is not a denial.</span></p></div></article>`;
}

function Chain() {
  const seen = audit.value;
  if (!seen) return null;
  if (!seen.count && !seen.broken && !seen.records.length)
    return html`<div class="empty"><h2>No log yet.</h2><p>Agents ask here for commands they may not run by themselves. Everything asked, decided and run is written to <code>${shown(seen.path)}</code>.</p><ul><li><code>stringd gate</code> in a terminal of yours opens the gate</li><li><code>stringd request --reason "try it" --no-privilege uptime</code> asks it something</li></ul></div>`;
  return html`<div class=${`chain${seen.broken ? " broken" : ""}`} role="status"><${Mark} of=${seen.broken ? "failed" : "done"} />
    ${seen.broken
      ? html`<span class="bad"><b>Chain broken</b> at line ${seen.broken.line}: ${shown(seen.broken.why)}. The ${seen.count} records before it hold.</span>`
      : html`<span><b>Chain whole.</b> ${seen.count} records, each holds the hash of the one before. Checked ${span(now.value - checked.value)} ago.</span>`}
    <span class="end"><span class="quiet">last <code>${shown(seen.records.at(-1)?.hash ?? "").slice(0, 12)}</code></span><${Copy} text=${shown(seen.records.at(-1)?.hash ?? "")} /><button class="button" onClick=${check}>Check again <kbd>v</kbd></button><button class="button" onClick=${() => save(seen.records)}>Export</button></span></div>`;
}

/** The last hash, to be kept elsewhere: whoever has it can tell later whether the log was cut. @param {{ text: string }} props */
function Copy({ text }) {
  const [copied, setCopied] = useState(false);
  return text && html`<button class="button" onClick=${() => navigator.clipboard.writeText(text).then(() => setCopied(true))}>${copied ? "Copied" : "Copy last hash"}</button>`;
}

/** @param {(any | null)[]} records */
function save(records) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob(records.map((each) => `${JSON.stringify(each)}\n`), { type: "application/x-ndjson" }));
  Object.assign(link, { download: "gate-audit.jsonl", target: "_blank" });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

/** @typedef {{ seq: number, at: string, mark: import("../parts/mark.js").MarkName, what: string, caller: string, as: string, command: string, note: string, took: string, by: string, hash: string, id: string }} Row */

/** Records as rows, the newest first. @param {(any | null)[]} records @returns {Row[]} */
export function rows(records) {
  /** @type {Map<string, any>} */
  const asked = new Map();
  /** @type {Row[]} */
  const made = [];
  for (const record of records) {
    if (!record) {
      made.push({ seq: 0, at: "", mark: "failed", what: "not a record", caller: "", as: "", command: "", note: "", took: "", by: "", hash: "", id: "" });
      continue;
    }
    if (record.event === "received") asked.set(record.id, record);
    const of = asked.get(record.id) ?? record;
    const [mark, what] = happened(record);
    made.push({
      seq: record.seq, at: record.time ?? "", mark, what, caller: of.session ?? (of.peer ? `pid ${of.peer.pid}` : ""), as: of.privileged === undefined ? "" : of.privileged ? "root" : "you",
      command: of.pipeline ? line(of.pipeline) : shown(of.pipeline_start ?? ""), note: shown(record.note ?? record.message ?? (record.event === "received" ? record.reason : "") ?? ""),
      took: (record.duration_ms ?? record.latency_ms) !== undefined ? took(record.duration_ms ?? record.latency_ms) : "", by: record.event === "decided" ? shown(record.by ?? record.via ?? "terminal") : record.event === "refused" ? "gate" : "", hash: record.hash ?? "", id: record.id ?? "",
    });
  }
  return made.reverse();
}

/** @param {any} record @returns {[import("../parts/mark.js").MarkName, string]} */
function happened(record) {
  switch (record.event) {
    case "received": return ["gate", "asked"];
    case "decided": return record.decision === "approved" ? ["done", "approved"] : record.decision === "denied" ? ["denied", "denied"] : ["stopped", "nobody answered"];
    case "finished": {
      const codes = record.exit_codes ?? [];
      return [codes.every((/** @type {number} */ code) => code === 0) ? "done" : "failed", `ended, exit ${codes.join(" ")}`];
    }
    case "abandoned": return ["interrupted", "caller left"];
    case "stopped": return ["stopped", "stopped"];
    case "refused": return ["failed", "refused unasked"];
    case "failed":
    case "disturbed": return ["failed", record.event];
    default: return ["idle", `gate ${record.event}`];
  }
}

function Log() {
  const seen = audit.value;
  if (!seen?.records.length) return null;
  const all = rows(seen.records);
  // The first bad record is the one behind those that hold.
  const brokenAt = seen.broken ? (seen.records.find((each) => each && each.seq > seen.count)?.seq ?? 0) : 0;
  const show = query.value.get("show") ?? "All";
  const wanted = (query.value.get("q") ?? "").toLowerCase();
  const fits = FILTERS.find(([name]) => name === show)?.[1] ?? (() => true);
  const ids = new Set(all.filter(fits).map((row) => row.id || String(row.seq)));
  const found = all.filter((row) => (show === "All" || ids.has(row.id || String(row.seq))) && (!wanted || `${row.command} ${row.caller} ${row.note}`.toLowerCase().includes(wanted)));
  return html`<div class="filters"><input class="field" type="search" placeholder="Command, caller, reason" aria-label="Filter the log" value=${query.value.get("q") ?? ""} onInput=${(/** @type {any} */ e) => setQuery("q", e.target.value)} />
      <div class="choice" role="group" aria-label="Show">${FILTERS.map(([name, test]) => html`<button aria-pressed=${show === name} onClick=${() => setQuery("show", name === "All" ? null : name)}>${name}${name === "All" ? "" : ` ${all.filter(test).length}`}</button>`)}</div></div>
    <table class="table audit"><thead><tr><th class="figure wide">record</th><th>time</th><th>what happened</th><th class="wide">caller</th><th>as</th><th>command</th><th class="wide">by</th><th class="figure wide">took</th><th class="wide">hash</th></tr></thead>
    <tbody>${found.map((row, index) => {
      const same = Boolean(row.id) && row.id === found[index - 1]?.id;
      const more = Boolean(row.id) && row.id === found[index + 1]?.id;
      return html`<tr key=${row.seq} class=${more ? "more" : ""}><td class="figure wide">${row.seq || ""}</td><td><time title=${row.at}>${row.at.slice(11, 19)}</time></td><td><${Mark} of=${row.mark} past /> <span class=${row.mark === "failed" ? "bad" : ""}>${shown(row.what)}</span></td><td class="wide cut">${shown(row.caller)}</td><td>${row.as}</td>
      <td class="words">${same ? html`<code class="quiet">same request</code>` : html`<code>${row.command}</code>`} <span class="quiet">${row.note}</span></td><td class="wide">${row.by}</td><td class="figure wide">${row.took}</td>
      <td class=${`wide mono quiet hash${row.seq && row.seq === brokenAt ? " broken" : ""}`}><span class="knot" aria-hidden="true"></span>${row.hash ? `${row.hash.slice(0, 4)}…${row.hash.slice(-4)}` : ""}</td></tr>`;
    })}</tbody></table>`;
}
