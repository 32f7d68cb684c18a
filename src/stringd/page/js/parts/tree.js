/** The flow of a run as a tree: what is done, working, waiting and next. */
import { html } from "../html.js";
import { shown } from "../text.js";
import { clock, now, took } from "../time.js";
import { Mark } from "./mark.js";

/** @typedef {{ name: string, note: string, level: number, agent: boolean, state: string, from: number, to: number | null, tokens: number }} Node */

const MARKS = /** @type {Record<string, import("./mark.js").MarkName>} */ ({
  next: "next", working: "working", waits: "waits", done: "done", failed: "failed", stopped: "stopped",
});
const NOTES = /** @type {Record<string, string>} */ ({ sequential: "", cycle: "cycle", broadcast: "side by side" });

/** @param {import("../run_model.js").RunModel} model @param {any} node */
function noteOf(model, node) {
  const round = node.type === "cycle" ? model.rounds.findLast((each) => each.step === node.name) : undefined;
  return round ? `round ${round.number}${round.most ? ` of ${round.most}` : ""}` : NOTES[node.type] ?? String(node.type ?? "");
}

/** The rows of the tree. @param {import("../run_model.js").RunModel} model @returns {Node[]} */
export function nodes(model) {
  /** @type {Node[]} */
  const rows = [];
  /** @param {any} node @param {number} level */
  const walk = (node, level) => {
    if (!node || typeof node !== "object") return;
    if (node.agent !== undefined && !node.steps) {
      rows.push(row(model, String(node.agent), "", level));
      return;
    }
    if (node.approve !== undefined && !node.type) {
      rows.push(row(model, String(node.name ?? "approve"), "you decide", level));
      return;
    }
    const at = rows.length;
    rows.push({ name: String(node.name ?? ""), note: noteOf(model, node), level, agent: false, state: "next", from: 0, to: null, tokens: 0 });
    const children = node.steps ?? node.agents ?? [];
    for (const child of Array.isArray(children) ? children : []) walk(child.flow ?? child, level + 1);
    for (const [kind, name] of [["observer", node.observer?.agent ?? node.observer], ["steering", node.steering?.agent]])
      if (typeof name === "string") rows.push(row(model, name, String(kind), level + 1));
    const [self, ...inner] = rows.slice(at);
    if (self) Object.assign(self, summary(model, self, inner));
  };
  walk(model.flow, 0);
  return rows;
}

/** @param {import("../run_model.js").RunModel} model @param {string} name @param {string} note @param {number} level @returns {Node} */
function row(model, name, note, level) {
  const agent = model.agents.get(name);
  const spans = agent?.spans ?? [];
  const running = agent && ["working", "waits"].includes(agent.state);
  const used = spans.reduce((sum, span) => sum + ((span.to ?? now.value) - span.from), 0);
  const first = spans[0]?.from ?? 0;
  return { name, note, level, agent: true, state: agent?.state ?? "next", from: first, to: first ? first + used : running ? null : 0, tokens: agent ? agent.input + agent.output : 0 };
}

/** A flow has its own step, or is what its parts are. @param {import("../run_model.js").RunModel} model @param {Node} self @param {Node[]} inner */
function summary(model, self, inner) {
  const step = model.steps.findLast((each) => each.name === self.name);
  const states = inner.map((each) => each.state);
  const state = states.includes("waits") || states.includes("working") ? "working" : states.includes("failed") ? "failed"
    : step?.state ?? (self.level === 0 && model.endedAt ? (model.status === "completed" ? "done" : model.status === "error" ? "failed" : "stopped") : states.length && states.every((each) => each === "done") ? "done" : states.includes("done") ? "working" : "next");
  const begins = inner.map((each) => each.from).filter(Boolean);
  const from = step?.from ?? (begins.length ? Math.min(...begins) : 0);
  const done = ["done", "failed", "stopped"].includes(state);
  const ends = inner.map((each) => each.to ?? 0);
  return { state, from, to: done ? step?.to ?? (self.level === 0 && model.endedAt) ?? Math.max(...ends, from) : null, tokens: inner.filter((each) => each.agent).reduce((sum, each) => sum + each.tokens, 0) };
}

/** @param {number} count */
export const tokens = (count) => (count >= 1e6 ? `${(count / 1e6).toFixed(1)}M` : count >= 1000 ? `${(count / 1000).toFixed(1)}k` : String(count));

const CALLS = 8;

/** @param {{ model: import("../run_model.js").RunModel, version: number, chosen: string, choose: (name: string) => void, reveal: (entry: string) => void }} props */
export function Flow({ model, chosen, choose, reveal }) {
  const rows = nodes(model);
  return html`<section class="flow" aria-label="Flow"><header><b>Flow</b> <span class="quiet">${model.agents.size} agent${model.agents.size === 1 ? "" : "s"}</span><span class="quiet figure">time</span><span class="quiet figure">tokens</span></header>
    <ul class="scroll" tabindex="0" role="list" aria-label="Steps">${rows.map((node) => html`<li key=${node.name + node.level}><button class=${`node level-${Math.min(node.level, 8)}${node.agent && node.name === chosen ? " chosen" : ""}${node.state === "next" ? " next" : ""}`} disabled=${!node.agent}
        aria-pressed=${node.agent ? node.name === chosen : undefined} onClick=${() => choose(node.name === chosen ? "" : node.name)}><${Threads} count=${node.level} />
      <${Mark} of=${MARKS[node.state] ?? "idle"} say=${node.state} /><span class=${node.agent ? "cut" : "cut group"}>${shown(node.name)} <span class=${node.state === "waits" ? "you" : "note quiet"}>${node.state === "waits" ? "waits" : node.note}</span></span>
      <span class="figure">${node.from ? clock((node.to ?? now.value) - node.from) : ""}</span><span class="figure">${node.tokens ? tokens(node.tokens) : ""}</span></button></li>
      ${node.agent && node.name === chosen && html`<${Calls} model=${model} of=${chosen} level=${node.level + 1} reveal=${reveal} />`}`)}</ul></section>`;
}

/** One line for each level above. @param {{ count: number }} props */
const Threads = ({ count }) => (count ? html`<span class="threads" aria-hidden="true">${Array.from({ length: Math.min(count, 8) }, () => html`<i></i>`)}</span>` : null);

/** The latest tool calls of the chosen agent. @param {{ model: import("../run_model.js").RunModel, of: string, level: number, reveal: (entry: string) => void }} props */
function Calls({ model, of, level, reveal }) {
  const calls = model.entries.filter((each) => each.kind === "tool" && each.agent === of).slice(-CALLS);
  const asked = [...model.prompts.values()].some((each) => each.agent === of);
  return calls.map((call) => {
    const mark = call.to ? (call.failed ? "failed" : "done") : asked ? "waits" : "working";
    return html`<li key=${call.id}><button class=${`node call level-${Math.min(level, 8)}`} onClick=${() => reveal(call.id)}><${Threads} count=${level} /><${Mark} of=${mark} say=${mark} /><span class="cut mono">${shown(call.tool)}</span><span class="figure">${took((call.to ?? now.value) - call.at)}</span></button></li>`;
  });
}
