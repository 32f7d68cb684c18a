/** The flow of a run as a tree: what is done, working, waiting and next. */
import { html } from "../html.js";
import { shown } from "../text.js";
import { clock, now } from "../time.js";
import { Mark } from "./mark.js";

/** @typedef {{ name: string, note: string, level: number, agent: boolean, state: string, from: number, to: number | null, tokens: number }} Node */

const MARKS = /** @type {Record<string, import("./mark.js").MarkName>} */ ({
  next: "next", working: "working", waits: "waits", done: "done", failed: "failed", stopped: "stopped",
});
const NOTES = /** @type {Record<string, string>} */ ({ sequential: "", cycle: "cycle", broadcast: "side by side" });

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
    rows.push({ name: String(node.name ?? ""), note: NOTES[node.type] ?? String(node.type ?? ""), level, agent: false, state: "next", from: 0, to: null, tokens: 0 });
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
  const state = states.includes("waits") ? "waits" : states.includes("working") ? "working" : states.includes("failed") ? "failed"
    : step?.state ?? (self.level === 0 && model.endedAt ? (model.status === "completed" ? "done" : model.status === "error" ? "failed" : "stopped") : states.length && states.every((each) => each === "done") ? "done" : states.includes("done") ? "working" : "next");
  const begins = inner.map((each) => each.from).filter(Boolean);
  const from = step?.from ?? (begins.length ? Math.min(...begins) : 0);
  const done = ["done", "failed", "stopped"].includes(state);
  const ends = inner.map((each) => each.to ?? 0);
  return { state, from, to: done ? step?.to ?? (self.level === 0 && model.endedAt) ?? Math.max(...ends, from) : null, tokens: inner.filter((each) => each.agent).reduce((sum, each) => sum + each.tokens, 0) };
}

/** @param {number} count */
export const tokens = (count) => (count >= 1e6 ? `${(count / 1e6).toFixed(1)}M` : count >= 1000 ? `${(count / 1000).toFixed(1)}k` : String(count));

/** @param {{ model: import("../run_model.js").RunModel, version: number, chosen: string, choose: (name: string) => void }} props */
export function Flow({ model, chosen, choose }) {
  const rows = nodes(model);
  return html`<section class="flow" aria-label="Flow"><header><b>Flow</b> <span class="quiet">${model.agents.size} agent${model.agents.size === 1 ? "" : "s"}</span><span class="quiet figure">time</span><span class="quiet figure">tokens</span></header>
    <ul class="scroll" tabindex="0" role="list" aria-label="Steps">${rows.map((node) => html`<li key=${node.name + node.level}><button class=${`node level-${Math.min(node.level, 8)}${node.agent && node.name === chosen ? " chosen" : ""}`} disabled=${!node.agent}
        aria-pressed=${node.agent ? node.name === chosen : undefined} onClick=${() => choose(node.name === chosen ? "" : node.name)}>
      <${Mark} of=${MARKS[node.state] ?? "idle"} say=${node.state} /><span class=${node.agent ? "cut" : "cut group"}>${shown(node.name)} <span class=${node.state === "waits" ? "you" : "quiet"}>${node.state === "waits" && node.agent ? "waits" : node.note}</span></span>
      <span class="figure">${node.from ? clock((node.to ?? now.value) - node.from) : ""}</span><span class="figure">${node.tokens ? tokens(node.tokens) : ""}</span></button></li>`)}</ul></section>`;
}
