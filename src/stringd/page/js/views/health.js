/** Is it well: figures over time, what doctor says, versions. */
import { html, signal, useEffect } from "../html.js";
import { daemon, figures } from "../feed.js";
import { offer } from "../keys.js";
import { Mark } from "../parts/mark.js";
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

export const healthKeys = /** @type {[string, string][]} */ ([["v", "check again"], ["?", "keys"]]);

export function Health() {
  useEffect(() => {
    look();
    return offer("health", [{ key: "v", what: "check again", run: look }]);
  }, []);
  const last = figures.value.at(-1);
  const damage = health.value?.damage ?? [];
  const well = !failure.value && !damage.length && !last?.errors && doctor.value?.ok !== false;
  return html`<div class="split"><section aria-labelledby="health-title">
      <header class="head"><${Mark} of=${well ? "done" : "failed"} /><h1 id="health-title">${well ? "It is well" : "Something is wrong"}</h1><span class="quiet">${health.value ? `up for ${span(health.value.uptime)}` : ""}</span></header>
      <div class="scroll" tabindex="0" role="group" aria-label="Figures">${failure.value && html`<p class="bad pad" role="alert">${shown(failure.value)}</p>`}
        ${damage.map((/** @type {string} */ each) => html`<p class="bad pad"><${Mark} of="failed" /> ${shown(each)}</p>`)}
        <${Plot} name="Requests a second" unit="" of=${(/** @type {any} */ each) => each.requestsPerSecond} />
        <${Plot} name="Waiting in queues" unit="" of=${(/** @type {any} */ each) => each.queued} />
        <${Plot} name="Memory" unit=" MB" of=${(/** @type {any} */ each) => Math.round(each.memoryBytes / 1e6)} />
        <${Plot} name="Topics" unit="" of=${(/** @type {any} */ each) => each.topics} />
        <${Plot} name="Runs" unit="" of=${(/** @type {any} */ each) => each.runs} />
        <${Plot} name="Delay of the daemon" unit=" ms" of=${(/** @type {any} */ each) => each.loopDelayMs} />
        <${Plot} name="Readers of the feed" unit="" of=${(/** @type {any} */ each) => each.readers} /></div>
    </section><aside aria-label="Doctor" tabindex="0"><${SetUp} />
      <section class="section"><h2>Versions</h2><dl class="arguments pad"><dt>stringd</dt><dd>${daemon.value.version}</dd><dt>process</dt><dd>${daemon.value.pid}</dd><dt>data</dt><dd class="mono">${shown(health.value?.dataDir ?? "")}</dd></dl></section></aside></div>`;
}

const CHECKS = /** @type {Record<string, [import("../parts/mark.js").MarkName, string]>} */ ({ ok: ["done", "ok"], off: ["idle", "off"], broken: ["failed", "broken"] });

/** What doctor finds; what models need is not seen from the daemon. */
function SetUp() {
  const checks = doctor.value?.checks ?? [];
  return html`<section class="section"><h2>Set-up <span class="quiet">${doctor.value ? (doctor.value.ok ? "everything needed is in place" : "something is broken") : "being checked"}</span></h2>
    <ul class="checks">${checks.map((check) => {
      const [mark, word] = CHECKS[check.state] ?? ["idle", check.state];
      return html`<li key=${check.name}><${Mark} of=${mark} say=${word} /><span class=${check.state === "broken" ? "bad" : ""}>${shown(check.name)}</span><span>${shown(check.detail)}${check.fix && html`<br /><span class="quiet">${shown(check.fix)}</span>`}</span></li>`;
    })}</ul><p class="pad quiet"><code>stringd doctor</code> in your terminal also says which models can be used.</p></section>`;
}

/** @param {{ name: string, unit: string, of: (figure: any) => number }} props */
function Plot({ name, unit, of }) {
  const series = figures.value.map(of);
  const most = Math.max(1, ...series);
  const points = series.map((value, index) => `${(index / Math.max(1, series.length - 1)) * 400},${60 - (value / most) * 56}`).join(" ");
  return html`<figure class="plot"><figcaption><b>${name}</b><span><b>${series.at(-1) ?? 0}${unit}</b> <span class="quiet">now, ${most === 1 && !series.some(Boolean) ? 0 : most}${unit} most</span></span></figcaption>
    <svg viewBox="0 0 400 62" preserveAspectRatio="none" role="img" aria-label=${`${name}: ${series.at(-1) ?? 0}${unit} now`}><path class="grid" d="M0 4H400M0 32H400M0 60H400" /><polyline points=${points} /></svg></figure>`;
}
