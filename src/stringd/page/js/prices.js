/** What tokens cost, where the catalogue of models knows a price: US dollars a million. */
import { html, signal } from "./html.js";
import { ask } from "./runs_socket.js";

/** @typedef {{ input: number, output: number }} Price */

/** Prices by provider/model, as agents name them. @type {import("../vendor/signals.js").Signal<Map<string, Price>>} */
const prices = signal(new Map());
let asked = false;

async function look() {
  asked = true;
  try {
    const { providers } = await ask({ type: "list_providers" });
    const found = new Map();
    for (const provider of providers)
      for (const { id, cost } of provider.models)
        if (typeof cost?.input === "number" && typeof cost.output === "number") found.set(`${provider.id}/${id}`, cost);
    prices.value = found;
  } catch {
    asked = false;
  }
}

/** @param {{ model: string, input: number, output: number }} agent @returns {number | null} */
export function costOf(agent) {
  if (!asked) look();
  const price = prices.value.get(agent.model);
  return price ? (agent.input * price.input + agent.output * price.output) / 1e6 : null;
}

/** Nothing where one agent's price is not known: a part would be taken for the whole. @param {import("./run_model.js").RunModel} model @returns {number | null} */
export function costOfRun(model) {
  const costs = [...model.agents.values()].filter((agent) => agent.input + agent.output > 0).map(costOf);
  return costs.length && costs.every((each) => each !== null) ? costs.reduce((/** @type {number} */ sum, each) => sum + (each ?? 0), 0) : null;
}

/** What a run of the list took. @param {any} run @returns {{ tokens: number, cost: number | null }} */
export function takenBy(run) {
  const used = (run.usage ?? []).map((/** @type {any} */ each) => ({ model: each.model, input: each.promptTokens, output: each.completionTokens })).filter((/** @type {any} */ each) => each.input + each.output > 0);
  const costs = used.map(costOf);
  const known = costs.length > 0 && costs.every((/** @type {number | null} */ each) => each !== null);
  const sum = (/** @type {number[]} */ of) => of.reduce((total, each) => total + each, 0);
  return { tokens: sum(used.map((/** @type {any} */ each) => each.input + each.output)), cost: known ? sum(costs) : null };
}

/** @param {number | null} cost */
export const costShown = (cost) => (cost === null ? null : html`<span class="figure" title="at the catalogue’s prices, without discounts for cached input">$${cost < 0.01 ? cost.toFixed(4) : cost.toFixed(2)}</span>`);
