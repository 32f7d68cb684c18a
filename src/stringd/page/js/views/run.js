/** One run: its flow, when who did what, what was said, and the answers in place. */
import { html, signal, useEffect, useRef, useState } from "../html.js";
import { link, resolutions, runs } from "../feed.js";
import { offer } from "../keys.js";
import { ForkPicker } from "../parts/fork.js";
import { Mark, runState } from "../parts/mark.js";
import { promptsOf } from "../parts/rows.js";
import { Timeline } from "../parts/timeline.js";
import { Transcript } from "../parts/transcript.js";
import { Flow, tokens } from "../parts/tree.js";
import { changeOf } from "../parts/transcript.js";
import { costOf, costOfRun, costShown } from "../prices.js";
import { resume } from "../prompts.js";
import { path, query, setQuery, to } from "../route.js";
import { useRun } from "../run_reader.js";
import { command } from "../runs_socket.js";
import { firstLine, shortId, shown } from "../text.js";
import { clock, now } from "../time.js";

export const runKeys = /** @type {[string, string][]} */ ([["y", "allow once"], ["n", "deny"], ["[ ]", "agent before, after"], ["t", "timeline"], ["s", "steer"], ["?", "keys"]]);

export function Run() {
  const runId = path.value[1] ?? "";
  const { model, version, problem } = useRun(runId);
  const chosen = query.value.get("agent") ?? "";
  const tab = query.value.get("tab") ?? "talk";
  const steer = useRef(/** @type {HTMLInputElement | null} */ (null));
  const names = useRef(/** @type {string[]} */ ([]));
  names.current = [...model.agents.keys()];
  useEffect(() => {
    const step = (/** @type {number} */ by) => {
      const at = names.current.indexOf(query.value.get("agent") ?? "");
      const next = at + by;
      setQuery("agent", next < 0 || next >= names.current.length ? null : names.current[next] ?? null);
    };
    return offer("run", [
      { key: "[", what: "agent before", run: () => step(-1) },
      { key: "]", what: "agent after", run: () => step(1) },
      { key: "s", what: "steer", run: () => steer.current?.focus() },
      { key: "f", what: "fork from a step", run: () => document.getElementById("fork")?.click() },
      { key: "m", what: "agents, where there is no room beside", run: () => setQuery("meters", query.value.get("meters") ? null : "1") },
    ]);
  }, []);
  if (problem) return html`<div class="empty"><h1>This run cannot be shown.</h1><p class="bad">${shown(problem)}</p><ul><li><a class="button yes" href=${to("runs")}>All runs</a></li></ul></div>`;
  const choose = (/** @type {string} */ name) => setQuery("agent", name);
  const filter = query.value.get("only") ?? "";
  const entries = model.entries.filter((each) => (!chosen || each.agent === chosen || !each.agent) && (filter !== "tools" || each.kind === "tool") && (filter !== "failed" || each.failed || each.kind === "error"));
  return html`<${Head} runId=${runId} model=${model} version=${version} />
    <${Timeline} model=${model} version=${version} chosen=${chosen} choose=${choose} />
    <nav class="tabs" aria-label="Parts of the run">${[["talk", "Talk"], ["flow", "Flow"], ["agents", "Agents"]].map(([key, name]) => html`<button aria-pressed=${tab === key} onClick=${() => setQuery("tab", key === "talk" ? null : key ?? null)}>${name}</button>`)}</nav>
    <div class=${`panes show-${tab}${query.value.get("meters") ? " meters" : ""}`}>
      <div class="pane left"><${Flow} model=${model} version=${version} chosen=${chosen} choose=${choose} reveal=${reveal} /><${Changed} model=${model} version=${version} /></div>
      <section class="pane middle" aria-label="Talk">
        <header class="sub"><b class="cut">${shown(chosen) || "Everything"}</b> <span class="quiet cut">${shown(model.agents.get(chosen)?.model ?? "")}</span>
          ${chosen && html`<button class="button plain small" onClick=${() => setQuery("agent", null)}>Everything</button>`}<div class="choice" role="group" aria-label="Show">${[["", chosen ? shown(chosen) : "Everything"], ["tools", "Tools"], ["failed", "Failed"]].map(([key, name]) => html`<button aria-pressed=${filter === key} onClick=${() => setQuery("only", key ?? null)}>${name}</button>`)}</div></header>
        ${entries.length ? html`<${Transcript} entries=${entries} version=${version} begin=${model.startedAt} />` : html`<p class="quiet pad scroll">Nothing yet.</p>`}
        <${Steer} runId=${runId} model=${model} version=${version} field=${steer} /></section>
      <div class="pane right" tabindex="0" role="group" aria-label="Agents"><${Agents} model=${model} version=${version} /><${Budget} model=${model} version=${version} /><${Decided} runId=${runId} model=${model} version=${version} /></div>
    </div>`;
}

/** @param {{ runId: string, model: import("../run_model.js").RunModel, version: number }} props */
function Head({ runId, model }) {
  const [asking, setAsking] = useState(false);
  const [forking, setForking] = useState(false);
  // The palette leads here with the question; it is asked once, not again after a reload.
  const wish = query.value.get("ask");
  useEffect(() => {
    if (!wish) return;
    setAsking(wish === "stop");
    setForking(wish === "fork");
    setQuery("ask", null);
  }, [wish]);
  const [failed, setFailed] = useState("");
  const known = runs.value.get(runId);
  // A run that this daemon does not know and that never ended was cut off with an earlier daemon.
  const status = model.endedAt ? model.status : known?.status ?? (link.value === "live" ? "interrupted" : model.status);
  const asked = promptsOf(runId);
  const [mark, word] = runState(status, false);
  const working = status === "running";
  const time = (model.endedAt || now.value) - (model.startedAt || now.value);
  const round = model.rounds.at(-1);
  /** @param {() => Promise<any>} work */
  const tried = (work) => work().catch((error) => setFailed(error.message));
  return html`<header class="head run-head"><${Mark} of=${asked.length ? "waits" : mark} /><h1>${shown(model.strategy || known?.strategyName || "Run")} <span class="quiet">${shortId(runId)}</span></h1>
    <span><b>${word}</b>${asked.length ? html`, <span class="you">waits for you</span>` : ""}</span>${round && html`<span>round <b>${round.number}</b>${round.most ? ` of ${round.most}` : ""}</span>`}<b>${clock(time)}</b><span><b>${tokens(model.tokens)}</b> tokens</span>${costShown(costOfRun(model))}<span><b>${model.toolCalls}</b> tool calls</span>
    <span class="end">${asking
      ? working && html`<span>Stop it?</span><button class="button" ref=${(/** @type {any} */ e) => e?.focus()} onClick=${() => setAsking(false)}>Let it run</button><button class="button stop" onClick=${() => { setAsking(false); tried(() => command({ type: "stop_run", runId })); }}>Stop</button>`
      : working ? html`<button class="button stop" onClick=${() => setAsking(true)}>Stop</button>`
      : ["error", "cancelled", "interrupted"].includes(status) && html`<button class="button" onClick=${() => tried(() => resume(runId))}>Resume</button>`}
      ${model.steps.length > 0 && html`<button class="button" id="fork" aria-expanded=${forking} onClick=${() => setForking(!forking)}>Fork from a step</button>`}
      <a class="button plain" href=${`${to("events")}?run=${encodeURIComponent(runId)}`}>Events</a><a class="button plain" href=${`/runs/${encodeURIComponent(runId)}/events.jsonl`} download=${`${shortId(runId)}.jsonl`} target="_blank">Log as JSONL</a></span>
    ${forking && html`<${ForkPicker} runId=${runId} close=${() => setForking(false)} />`}
    ${failed && html`<p class="bad" role="alert">${shown(failed)}</p>`}</header>`;
}

/** @param {{ model: import("../run_model.js").RunModel, version: number }} props */
function Agents({ model }) {
  return html`<section class="section"><h2>Agents</h2><div class="agents">${[...model.agents.values()].map((agent) => {
    const share = agent.window ? agent.context / agent.window : 0;
    return html`<div key=${agent.name}><p><span class="cut">${shown(agent.name)}</span><span class="figure">${tokens(agent.input)} in</span><span class="figure">${tokens(agent.output)} out</span>${costShown(costOf(agent))}</p>
      <svg class=${`meter${share >= 0.75 ? " high" : ""}`} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width=${Math.min(100, share * 100)} height="4" /></svg>
      <p class="quiet"><span class="cut">${shown(agent.model)}</span><span>${agent.window ? `${Math.round(share * 100)} % of context` : ""}</span></p></div>`;
  })}</div></section>`;
}

/** What the run has used of its limits. @param {{ model: import("../run_model.js").RunModel, version: number }} props */
function Budget({ model }) {
  const { tokens: most, toolCalls, seconds, cost } = model.budget;
  const { segment } = model;
  // A run that was continued cost something before these limits began to count.
  const spent = segment.tokens ? null : costOfRun(model);
  const time = Math.max(0, (model.endedAt || now.value) - segment.at);
  const rows = /** @type {[string, number, number, string][]} */ ([]);
  if (most !== undefined) rows.push(["tokens", model.tokens - segment.tokens, most, `${tokens(model.tokens - segment.tokens)} of ${tokens(most)}`]);
  if (cost !== undefined) rows.push(["cost", spent ?? 0, cost, `${spent === null ? "not known" : `$${spent.toFixed(2)}`} of $${cost.toFixed(2)}`]);
  if (toolCalls !== undefined) rows.push(["tool calls", model.toolCalls - segment.toolCalls, toolCalls, `${model.toolCalls - segment.toolCalls} of ${toolCalls}`]);
  if (seconds !== undefined) rows.push(["time", time / 1000, seconds, `${clock(time)} of ${clock(seconds * 1000)}`]);
  if (!rows.length) return null;
  return html`<section class="section" aria-labelledby="budget-title"><h2 id="budget-title">Budget</h2><div class="agents">${rows.map(([name, used, of, words]) => {
    const share = of ? used / of : 1;
    return html`<div key=${name}><p><span>${name}</span><span class="figure">${words}</span></p>
      <svg class=${`meter${share >= 0.75 ? " high" : ""}`} viewBox="0 0 100 4" preserveAspectRatio="none" aria-hidden="true"><rect width=${Math.min(100, share * 100)} height="4" /></svg></div>`;
  })}</div></section>`;
}

/** Files the run's tools wrote. @param {{ model: import("../run_model.js").RunModel, version: number }} props */
function Changed({ model }) {
  /** @type {Map<string, { added: number, removed: number, last: string, asks: boolean }>} */
  const files = new Map();
  for (const entry of model.entries) {
    if (entry.kind !== "tool" || entry.failed || !entry.args || typeof entry.args !== "object") continue;
    const lines = changeOf(entry.tool ?? "", entry.args);
    const name = entry.args.path ?? entry.args.file_path;
    if (!lines || typeof name !== "string") continue;
    const { added, removed } = files.get(name) ?? { added: 0, removed: 0 };
    const count = (/** @type {string} */ kind) => lines.filter((each) => each.kind === kind).length;
    files.set(name, { added: added + count("add"), removed: removed + count("del"), last: entry.id, asks: !entry.to && [...model.prompts.values()].some((each) => each.agent === entry.agent) });
  }
  if (!files.size) return null;
  return html`<section class="changed" aria-label="Changed files"><h2>Changed <span class="quiet">${files.size} file${files.size === 1 ? "" : "s"}</span></h2>
    <ul>${[...files].map(([name, file]) => html`<li key=${name}><button class="cut mono" title=${shown(name)} onClick=${() => reveal(file.last)}>${shown(name)}</button>${file.asks && html`<span class="you">asks</span>`}<span class="good">+${file.added}</span> <span class="bad">−${file.removed}</span></li>`)}</ul></section>`;
}

/** Bring what was said or done into view, and open it. @param {string} id */
function reveal(id) {
  const found = document.querySelector(`.entry[data-entry="${CSS.escape(id)}"]`);
  found?.scrollIntoView({ block: "center" });
  const fold = found?.querySelector(".fold");
  if (fold instanceof HTMLElement) {
    if (fold.getAttribute("aria-expanded") === "false") fold.click();
    fold.focus({ preventScroll: true });
  }
}

/** What the owner answered in this run, the latest first. @param {{ runId: string, model: import("../run_model.js").RunModel, version: number }} props */
function Decided({ runId, model }) {
  const asked = new Map(model.entries.filter((each) => each.kind === "prompt").map((each) => [each.prompt.requestId, each]));
  const mine = [...resolutions().values()].filter((each) => each.runId === runId && each.answer).reverse();
  if (!mine.length) return null;
  return html`<section class="section decided"><h2>You decided</h2><ul>${mine.map((each) => {
    const entry = asked.get(each.requestId);
    const prompt = entry?.prompt;
    const what = prompt?.prompt === "permission" ? `${prompt.tool} ${prompt.resource}` : firstLine(prompt?.text || prompt?.prompt || "");
    return html`<li key=${each.id}><button class="cut" onClick=${() => entry && reveal(entry.id)}>${shown(what)}</button><span class="quiet">${prompt?.prompt === "permission" ? DECISIONS[each.answer] ?? shown(each.answer) : firstLine(each.answer).slice(0, 24)}, ${clock(Date.parse(each.ts) - model.startedAt)}</span></li>`;
  })}</ul></section>`;
}

const DECISIONS = /** @type {Record<string, string>} */ ({ allow: "once", "allow-session": "session", deny: "denied", "deny-session": "denied, session" });

const modes = signal("call");

/** @param {{ runId: string, model: import("../run_model.js").RunModel, version: number, field: any }} props */
function Steer({ runId, model, field }) {
  const [text, setText] = useState("");
  const [failed, setFailed] = useState("");
  if (model.endedAt || model.status !== "running") return null;
  /** @param {Event} event */
  const send = async (event) => {
    event.preventDefault();
    if (!text.trim()) return;
    try {
      await command({ type: "steer_run", runId, text, mode: modes.value });
      setText("");
      setFailed("");
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    }
  };
  return html`<form class="steer" onSubmit=${send}><input ref=${field} class="field" aria-label="Steer the run" placeholder="Steer: read before the next step" value=${text} onInput=${(/** @type {any} */ e) => setText(e.target.value)} />
    <select class="field" aria-label="When" value=${modes.value} onChange=${(/** @type {any} */ e) => (modes.value = e.target.value)}><option value="call">next step</option><option value="steer">as soon as possible</option></select>
    <button class="button" disabled=${!text.trim()}>Send <kbd>Enter</kbd></button>${failed && html`<span class="bad" role="alert">${shown(failed)}</span>`}</form>`;
}


