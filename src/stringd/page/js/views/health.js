/** Is it well: figures over time, what doctor says, versions. */
import { html, signal, useEffect } from "../html.js";
import { feedRow } from "../event_rows.js";
import { daemon, events, figures } from "../feed.js";
import { offer } from "../keys.js";
import { Mark } from "../parts/mark.js";
import { query, setQuery, to } from "../route.js";
import { shown } from "../text.js";
import { span } from "../time.js";

const health = signal(/** @type {any} */ (null));
const failure = signal("");
const doctor = signal(/** @type {{ ok: boolean, checks: { name: string, state: string, detail: string, fix: string | null }[] } | null} */ (null));

async function look() {
  try {
    health.value = await (await fetch("/health")).json();
    failure.value = "";
    const checked = await fetch("/doctor");
    doctor.value = checked.ok ? await checked.json() : null;
  } catch (error) {
    failure.value = error instanceof Error ? error.message : String(error);
  }
}

export function Health() {
  useEffect(() => {
    look();
    return offer("health", [{ key: "v", what: "check again", run: look }]);
  }, []);
  const last = figures.value.at(-1);
  const damage = health.value?.damage ?? [];
  const well = !failure.value && !damage.length && !last?.errors && doctor.value?.ok !== false;
  return html`<div class="split"><section aria-labelledby="health-title">
      <header class="head"><${Mark} of=${well ? "done" : "failed"} /><h1 id="health-title">${well ? "It is well" : "Something is wrong"}</h1><span class="quiet">${health.value ? `up for ${span(health.value.uptime)}` : ""}</span>
        <div class="choice" role="group" aria-label="Time">${SPANS.map(([name]) => html`<button aria-pressed=${shownSpan()[0] === name} onClick=${() => setQuery("span", name === SPANS[0]?.[0] ? null : name)}>${name}</button>`)}</div></header>
      <div class="scroll" tabindex="0" role="group" aria-label="Figures">${failure.value && html`<p class="bad pad" role="alert">${shown(failure.value)}</p>`}
        ${damage.map((/** @type {string} */ each) => html`<p class="bad pad"><${Mark} of="failed" /> ${shown(each)}</p>`)}
        <${Plot} name="Requests a second" unit="" of=${(/** @type {any} */ each) => each.requestsPerSecond} />
        <${Plot} name="Waiting in queues" unit="" of=${(/** @type {any} */ each) => each.queued} />
        <${Plot} name="Memory" unit=" MB" least=${100} of=${(/** @type {any} */ each) => Math.round(each.memoryBytes / 1e6)} />
        <${Plot} name="Delay of the daemon" unit=" ms" least=${20} of=${(/** @type {any} */ each) => each.loopDelayMs} />
        <${Plot} name="Open pages and watchers" unit="" of=${(/** @type {any} */ each) => each.readers} /><${Axis} /></div>
    </section><aside aria-label="Doctor" tabindex="0"><${SetUp} /><${Failures} />
      <section class="section"><h2>Versions</h2><dl class="arguments pad"><dt>stringd</dt><dd>${daemon.value.version}</dd><dt>process</dt><dd>${daemon.value.pid}</dd><dt>data</dt><dd class="mono">${shown(health.value?.dataDir ?? "")}</dd></dl></section></aside></div>`;
}

const CHECKS = /** @type {Record<string, [import("../parts/mark.js").MarkName, string]>} */ ({ ok: ["done", "ok"], off: ["idle", "off"], broken: ["failed", "broken"] });

/** What doctor finds; what models need is not seen from the daemon. */
function SetUp() {
  const checks = doctor.value?.checks ?? [];
  return html`<section class="section"><h2>Set-up <span class="quiet">${doctor.value ? (doctor.value.ok ? "everything needed is in place" : "something is broken") : "being checked"}</span><button class="button small end" onClick=${look}>Check again <kbd>v</kbd></button></h2>
    <ul class="checks">${checks.map((check) => {
      const [mark, word] = CHECKS[check.state] ?? ["idle", check.state];
      return html`<li key=${check.name}><${Mark} of=${mark} say=${word} /><span class=${check.state === "broken" ? "bad" : ""}>${shown(check.name)}</span><span class="quiet">${shown(check.detail)}${check.fix && html`<br /><span class="quiet">${shown(check.fix)}</span>`}</span></li>`;
    })}</ul><p class="pad quiet"><code>stringd doctor</code> in your terminal also says which models can be used.</p></section>`;
}

/** @param {{ name: string, unit: string, of: (figure: any) => number, least?: number }} props `least` is how high the plot is at least */
function Plot({ name, unit, of, least = 1 }) {
  const [, span] = shownSpan();
  const from = latest() - span;
  const seen = figures.value.filter((each) => Date.parse(each.ts) >= from);
  const series = seen.map(of);
  const most = Math.max(...series, 0);
  const high = Math.max(least, most) * 1.1;
  /** @type {string[]} */
  const pieces = [];
  let before = -Infinity;
  seen.forEach((each, index) => {
    const at = Date.parse(each.ts);
    // While nobody looked the daemon did not measure: that is a gap and not a line.
    pieces.push(`${at - before > GAP_MS ? "M" : "L"}${((at - from) / span) * 400} ${60 - ((series[index] ?? 0) / high) * 56}`);
    before = at;
  });
  const text = pieces.join("");
  return html`<figure class="plot"><figcaption><b>${name}</b><span><b>${series.at(-1) ?? 0}${unit}</b> <span class="quiet">now, ${most}${unit} most</span></span></figcaption>
    <svg viewBox="0 0 400 62" preserveAspectRatio="none" role="img" aria-label=${`${name}: ${series.at(-1) ?? 0}${unit} now`}><path class="grid" d="M0 4H400M0 32H400M0 60H400" /><path class="line" d=${text} /></svg></figure>`;
}

/** When it was measured last, so that nothing is drawn again in between. */
const latest = () => Date.parse(figures.value.at(-1)?.ts ?? "") || Date.now();
const GAP_MS = 30_000;
const SPANS = /** @type {[string, number][]} */ ([["10 min", 600_000], ["1 h", 3_600_000]]);
const shownSpan = () => SPANS.find(([name]) => name === query.value.get("span")) ?? /** @type {[string, number]} */ (SPANS[0]);

function Axis() {
  const [, span] = shownSpan();
  const at = (/** @type {number} */ part) => new Date(latest() - span * part).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  return html`<p class="axis quiet" aria-hidden="true"><span>${at(1)}</span><span>${at(0.5)}</span><span>now</span></p>`;
}

const MOST_FAILURES = 8;

/** What went wrong lately, as far as the feed reaches back. */
function Failures() {
  const bad = events.value.map(feedRow).filter((row) => row.mark === "failed").slice(-MOST_FAILURES).reverse();
  return html`<section class="section"><h2>Failed lately <span class="quiet">${bad.length ? "" : "nothing"}</span></h2><ul class="checks timed">${bad.map((row) => html`<li key=${row.id}><${Mark} of="failed" /><time title=${new Date(row.ts).toLocaleString()}>${row.ts.slice(11, 19)}</time><a href=${row.of.runId ? to("run", row.of.runId) : row.of.topic ? to("topic", row.of.user, row.of.topic) : to("gate")}>${row.who}: ${row.what}</a></li>`)}</ul></section>`;
}
