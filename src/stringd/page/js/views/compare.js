/** Two runs side by side: steps, time and tokens, then what each said. */
import { html, useEffect, useState } from "../html.js";
import { comparing } from "../comparing.js";
import { offer } from "../keys.js";
import { Diff } from "../parts/diff.js";
import { diffLines } from "../line_diff.js";
import { Mark, runState } from "../parts/mark.js";
import { Transcript } from "../parts/transcript.js";
import { tokens } from "../parts/tree.js";
import { costOfRun, costShown } from "../prices.js";
import { go, query, setQuery, to } from "../route.js";
import { useRun } from "../run_reader.js";
import { firstLine, shortId, shown } from "../text.js";
import { Age, clock, now, took } from "../time.js";

/** @typedef {import("../run_model.js").RunModel} RunModel */
/** @typedef {{ name: string, time: number | null, tokens: number, state: string }} StepSum */

/** Steps by name, in the order they were first taken; rounds of one step are one row. @param {RunModel} model @returns {Map<string, StepSum>} */
function stepsOf(model) {
  /** @type {Map<string, StepSum>} */
  const found = new Map();
  for (const step of model.steps) {
    const sum = found.get(step.name) ?? { name: step.name, time: 0, tokens: 0, state: "" };
    found.set(step.name, { ...sum, time: (sum.time ?? 0) + ((step.to ?? now.value) - step.from), tokens: sum.tokens + step.tokens, state: step.state });
  }
  return found;
}

export function Compare() {
  const [a, b] = [query.value.get("a") ?? "", query.value.get("b") ?? ""];
  if (!a || !b) return html`<div class="empty"><h1>Choose two runs.</h1><p>Tick two runs in the list, then compare them.</p><ul><li><a class="button yes" href=${to("runs")}>All runs</a></li></ul></div>`;
  return html`<${Pair} key=${`${a} ${b}`} a=${a} b=${b} />`;
}

/** @param {{ a: string, b: string }} props */
function Pair({ a, b }) {
  const [left, right] = [useRun(a), useRun(b)];
  const [first, second] = [stepsOf(left.model), stepsOf(right.model)];
  const names = [...new Set([...first.keys(), ...second.keys()])];
  const chosen = query.value.get("step") ?? "";
  const swap = () => go(comparing(b, a), { replace: true });
  useEffect(() => {
    /** @param {number} by */
    const move = (by) => {
      const at = names.indexOf(query.value.get("step") ?? "") + by;
      setQuery("step", names[Math.max(0, Math.min(names.length - 1, at))] ?? null);
    };
    return offer("compare", [
      { key: "j", what: "next step", run: () => move(1) },
      { key: "k", what: "previous step", run: () => move(-1) },
      { key: "s", what: "swap", run: swap },
      { key: "Escape", what: "every step", run: () => setQuery("step", null) },
    ]);
  }, [names.join("\n")]);
  const problem = left.problem || right.problem;
  if (problem) return html`<div class="empty"><h1>These runs cannot be compared.</h1><p class="bad">${shown(problem)}</p><ul><li><a class="button yes" href=${to("runs")}>All runs</a></li></ul></div>`;
  const most = Math.max(1, ...[...first.values(), ...second.values()].map((each) => each.time ?? 0));
  const same = left.model.strategy === right.model.strategy;
  return html`<header class="head"><h1>${same ? shown(left.model.strategy) : "Two runs"}</h1><span class="quiet">aligned by step</span><span class="end"><button class="button" onClick=${swap}>Swap</button><a class="button" href=${to("runs")}>Other runs</a></span></header>
    <div class="two">${[[a, left], [b, right]].map(([id, run]) => html`<${Side} runId=${id} run=${run} named=${!same} />`)}</div>
    <div class="steps"><table class="table"><thead><tr><th>step</th><th class="wide">time</th><th class="figure">first</th><th class="figure">second</th><th class="figure">longer by</th><th class="figure wide">tokens, first</th><th class="figure wide">second</th><th class="figure wide">more</th></tr></thead>
      <tbody>${names.map((name) => html`<${Step} key=${name} name=${name} first=${first.get(name)} second=${second.get(name)} most=${most} chosen=${name === chosen} />`)}</tbody></table>
      ${!names.length && html`<p class="quiet pad">Neither took a step yet.</p>`}</div>
    <${Results} first=${left.model} second=${right.model} version=${`${left.version} ${right.version}`} />
    <div class="two talk">${[left, right].map((run, index) => html`<section class="pane" aria-label=${index ? "Second run" : "First run"}><${Talk} run=${run} step=${chosen} /></section>`)}</div>`;
}

/** What the two came to, and where that differs. @param {{ first: RunModel, second: RunModel, version: string }} props */
function Results({ first, second }) {
  const [open, setOpen] = useState(true);
  if (!first.result || !second.result) return null;
  const same = first.result === second.result;
  return html`<section class="results" aria-label="Results"><h2>Results ${same ? html`<span class="quiet">the same</span>` : html`<button class="button plain" aria-expanded=${open} onClick=${() => setOpen(!open)}>${open ? "Hide the difference" : "Show the difference"}</button>`}</h2>
    ${!same && open && html`<${Diff} lines=${diffLines(first.result, second.result)} />`}</section>`;
}

/** @param {{ runId: string, run: { model: RunModel, version: number }, named: boolean }} props */
function Side({ runId, run: { model }, named }) {
  const [mark, word] = runState(model.status, false);
  const failed = model.entries.filter((each) => each.failed).length;
  return html`<div class="pad"><p><${Mark} of=${mark} /> <a href=${to("run", runId)}><b>${shortId(runId)}</b></a> <span class=${mark === "failed" ? "bad" : ""}>${word}</span> ${named && html`<span>${shown(model.strategy)}</span>`} ${model.startedAt > 0 && html`<span class="quiet"><${Age} at=${new Date(model.startedAt).toISOString()} /> ago</span>`}</p>
    <p class="facts"><b>${clock((model.endedAt || now.value) - (model.startedAt || now.value))}</b><span><b>${tokens(model.tokens)}</b> tokens</span>${costShown(costOfRun(model))}<span><b>${model.toolCalls}</b> tool calls${failed ? html`, <span class="bad">${failed} failed</span>` : ""}</span></p>
    ${model.error && html`<p class="bad">${firstLine(model.error)}</p>`}</div>`;
}

/** @param {{ name: string, first?: StepSum, second?: StepSum, most: number, chosen: boolean }} props */
function Step({ name, first, second, most, chosen }) {
  const longer = first && second ? (first.time ?? 0) - (second.time ?? 0) : 0;
  const more = first && second ? first.tokens - second.tokens : 0;
  /** @param {StepSum | undefined} step @param {number} y */
  const bar = (step, y) => step && html`<rect class=${`${y ? "second" : "first"}${step.state === "failed" ? " failed" : ""}`} y=${y} height="5" width=${Math.max(1, ((step.time ?? 0) / most) * 240)} />`;
  /** @param {StepSum | undefined} step */
  const time = (step) => (step ? html`<span class=${step.state === "failed" ? "bad" : ""}>${took(step.time ?? 0)}${["failed", "stopped"].includes(step.state) ? ` ${step.state}` : ""}</span>` : html`<span class="quiet">not reached</span>`);
  return html`<tr class=${chosen ? "chosen" : ""} onClick=${() => setQuery("step", chosen ? null : name)}>
    <td><button class="name" aria-pressed=${chosen}>${shown(name)}</button></td>
    <td class="wide"><svg class="pair" viewBox="0 0 240 12" preserveAspectRatio="none" aria-hidden="true">${bar(first, 0)}${bar(second, 7)}</svg></td>
    <td class="figure">${time(first)}</td><td class="figure">${time(second)}</td><td class="figure">${longer > 0 ? took(longer) : longer < 0 ? `−${took(-longer)}` : ""}</td>
    <td class="figure wide">${first ? tokens(first.tokens) : ""}</td><td class="figure wide">${second ? tokens(second.tokens) : ""}</td><td class="figure wide">${more > 0 ? tokens(more) : more < 0 ? `−${tokens(-more)}` : ""}</td></tr>`;
}

/** What a run said, in one step if one is chosen. @param {{ run: { model: RunModel, version: number }, step: string }} props */
function Talk({ run: { model, version }, step }) {
  const times = model.steps.filter((each) => each.name === step);
  const entries = step ? model.entries.filter((each) => times.some(({ from, to: end }) => each.at >= from && each.at <= (end ?? now.value))) : model.entries;
  return entries.length ? html`<${Transcript} entries=${entries} version=${version} begin=${model.startedAt} />` : html`<p class="quiet pad scroll">${step ? "It said nothing in that step." : "Nothing yet."}</p>`;
}
