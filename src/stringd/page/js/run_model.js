/** A run, read from what it said: agents, steps, spans of time and a transcript. Pure. */

/**
 * @typedef {{ kind: "model" | "tool" | "waits", from: number, to: number | null, label: string }} Span
 * @typedef {{ name: string, model: string, calls: number, input: number, output: number, context: number, window: number, state: string, spans: Span[] }} Agent
 * @typedef {{ step: string, number: number, most: number, from: number, to: number | null }} Round
 * @typedef {{ name: string, path: number[], state: string, from: number, to: number | null, tokens: number }} Step
 * @typedef {{
 *   id: string, at: number, agent: string, kind: "said" | "thought" | "tool" | "prompt" | "input" | "steer" | "note" | "segment" | "result" | "error",
 *   text: string, to?: number | null, tool?: string, args?: any, output?: string, failed?: boolean, prompt?: any, answer?: string,
 * }} Entry
 */

export class RunModel {
  constructor() {
    this.seq = 0;
    this.strategy = "";
    this.status = "pending";
    this.startedAt = 0;
    this.endedAt = 0;
    this.result = "";
    this.error = "";
    /** @type {any} */ this.flow = null;
    /** What the latest segment may use. @type {{ tokens?: number, toolCalls?: number, seconds?: number, cost?: number }} */ this.budget = {};
    /** When the latest segment began, and what was used before it: limits count from there. */
    this.segment = { at: 0, tokens: 0, toolCalls: 0 };
    /** @type {Map<string, Agent>} */ this.agents = new Map();
    /** @type {Step[]} */ this.steps = [];
    /** @type {Entry[]} */ this.entries = [];
    /** @type {Map<string, Entry>} */ this.calls = new Map();
    this.toolCalls = 0;
    /** Rounds of cycles that an observer ends. @type {Round[]} */ this.rounds = [];
    /** @type {Map<string, Entry>} */ this.prompts = new Map();
  }

  /** The last entry of each agent. @type {Map<string, Entry>} */
  #latest = new Map();

  get tokens() {
    let sum = 0;
    for (const agent of this.agents.values()) sum += agent.input + agent.output;
    return sum;
  }

  /** @param {any} message a broadcast of the run; what was heard before counts once */
  take(message) {
    if (typeof message.seq !== "number" || message.seq <= this.seq) return;
    this.seq = message.seq;
    const at = Date.parse(message.ts);
    switch (message.type) {
      case "strategy_started": return this.#started(message, at);
      case "step_started": return this.#stepStarted(message.stepName, at);
      case "step_completed": return this.#stepDone(message, at);
      case "agent_streaming": return this.#streamed(message, at);
      case "agent_output": return this.#counted(message);
      case "request_permission":
      case "request_question":
      case "request_input": return this.#asked(message, at);
      case "steer_queued": return void this.#add({ at, agent: "", kind: "steer", text: message.text });
      case "strategy_completed": return this.#ended("completed", message.result, "", at);
      case "strategy_error": {
        const stopped = message.error.code === "CANCELLED";
        return this.#ended(stopped ? "cancelled" : "error", "", `${message.error.code}: ${message.error.message}`, at);
      }
    }
  }

  /** @param {Omit<Entry, "id">} entry */
  #add(entry) {
    const made = { ...entry, id: `${this.seq}` };
    this.entries.push(made);
    if (made.agent) this.#latest.set(made.agent, made);
    else this.#latest.clear();
    return made;
  }

  /** @param {string} name @param {string} [model] @returns {Agent} */
  #agent(name, model) {
    let agent = this.agents.get(name);
    if (!agent) {
      agent = { name, model: "", calls: 0, input: 0, output: 0, context: 0, window: 0, state: "next", spans: [] };
      this.agents.set(name, agent);
    }
    if (model) agent.model = model;
    return agent;
  }

  /** @param {any} message @param {number} at */
  #started(message, at) {
    this.strategy = message.strategyName;
    this.flow = message.flowTree;
    this.status = "running";
    this.startedAt ||= at;
    this.endedAt = 0;
    this.budget = message.budget ?? {};
    this.segment = { at, tokens: this.tokens, toolCalls: this.toolCalls };
    if (this.entries.length) this.#add({ at, agent: "", kind: "segment", text: "continued" });
    for (const name of message.agents) this.#agent(name);
  }

  /** The cycle among the steps of the flow that is called so. @param {string} name */
  cycle(name) {
    return this.flow?.steps?.find((/** @type {any} */ each) => each.type === "cycle" && each.name === name);
  }

  /** @param {string} name @param {number} at */
  #stepStarted(name, at) {
    this.steps.push({ name, path: [], state: "working", from: at, to: null, tokens: 0 });
    const cycle = this.cycle(name);
    if (cycle?.observer) this.rounds.push({ step: name, number: 1, most: Number(cycle.cycles) || 0, from: at, to: null });
  }

  /** A cycle that goes on after its observer spoke is in its next round. @param {number} at */
  #nextRound(at) {
    const last = this.rounds.at(-1);
    const step = this.steps.at(-1);
    if (last?.to && step?.name === last.step && step.to === null) this.rounds.push({ ...last, number: last.number + 1, from: at, to: null });
  }

  /** @param {string} agent @param {number} at */
  #endRound(agent, at) {
    const last = this.rounds.at(-1);
    const observer = last && this.cycle(last.step)?.observer;
    if (last && last.to === null && agent === (observer?.agent ?? observer)) last.to = at;
  }

  /** @param {any} message @param {number} at */
  #stepDone(message, at) {
    const step = this.steps.findLast((each) => each.name === message.stepName && each.to === null);
    if (!step) return;
    step.to = at;
    step.state = "done";
    for (const round of this.rounds) round.to ??= at;
    const usage = message.result.usage;
    step.tokens = usage.promptTokens + usage.completionTokens;
    this.#rest(message.stepName, at);
  }

  /** @param {string} name @param {number} at */
  #rest(name, at) {
    const agent = this.agents.get(name);
    if (!agent) return;
    agent.state = "done";
    this.#close(agent, at);
  }

  /** @param {Agent} agent @param {number} at */
  #close(agent, at) {
    const open = agent.spans.at(-1);
    if (open && open.to === null) open.to = at;
  }

  /** @param {Agent} agent @param {Span["kind"]} kind @param {number} at @param {string} label */
  #span(agent, kind, at, label) {
    this.#close(agent, at);
    agent.spans.push({ kind, from: at, to: null, label });
  }

  /** @param {any} message @param {number} at */
  #streamed(message, at) {
    const agent = this.#agent(message.agentName, message.model);
    if (message.contextWindow) agent.window = message.contextWindow;
    const event = message.event;
    switch (event.type) {
      case "step-start":
        agent.state = "working";
        this.#nextRound(at);
        this.#span(agent, "model", at, "model");
        if (event.note) this.#add({ at, agent: agent.name, kind: "note", text: event.note });
        return;
      case "text":
      case "thinking": {
        const kind = event.type === "text" ? "said" : "thought";
        // Agents that work side by side speak in turns, each with its own sentence.
        const last = this.#latest.get(agent.name);
        if (last?.kind === kind) {
          last.text += event.text;
          last.to = at;
        } else this.#add({ at, agent: agent.name, kind, text: event.text, to: at });
        return;
      }
      case "tool-call": {
        this.toolCalls += 1;
        const name = event.mcp ? `${event.mcp.serverId ?? ""} ${event.mcp.toolName ?? event.toolName}`.trim() : event.toolName;
        this.calls.set(event.toolCallId + agent.name, this.#add({ at, agent: agent.name, kind: "tool", text: "", tool: name, args: parsed(event.args), to: null }));
        this.#span(agent, "tool", at, name);
        return;
      }
      case "tool-result": {
        const call = this.calls.get(event.toolCallId + agent.name);
        this.calls.delete(event.toolCallId + agent.name);
        if (call) Object.assign(call, { output: event.output, to: at, failed: event.status === "error" || /^Error \(\w+\): /.test(event.output ?? "") });
        this.#settlePrompts(agent.name);
        this.#span(agent, "model", at, "model");
        return;
      }
      case "done":
        this.#latest.delete(agent.name);
        agent.calls += 1;
        agent.state = "done";
        this.#close(agent, at);
        this.#endRound(agent.name, at);
    }
  }

  /** @param {any} message */
  #counted(message) {
    const agent = this.#agent(message.agentName, message.model);
    agent.input += message.usage.promptTokens;
    agent.output += message.usage.completionTokens;
    agent.context = message.contextUsage?.totalTokens ?? agent.context;
    agent.window = message.contextWindow ?? agent.window;
  }

  /** @param {any} message @param {number} at */
  #asked(message, at) {
    const agent = this.#agent(message.agentName);
    agent.state = "waits";
    this.#span(agent, "waits", at, "waits for you");
    const kind = message.type.slice("request_".length);
    const id = kind === "input" ? `input:${message.agentName}` : message.requestId;
    const prompt = {
      runId: message.runId, requestId: id, prompt: kind, agent: message.agentName, strategy: this.strategy, ts: message.ts,
      text: message.question ?? message.prompt ?? "", tool: message.toolName ?? "", operation: message.operation ?? "", resource: message.resource ?? "",
    };
    this.prompts.set(id, this.#add({ at, agent: agent.name, kind: "prompt", text: prompt.text, prompt }));
  }

  /** What an agent had asked is settled once it goes on. @param {string} name */
  #settlePrompts(name) {
    for (const [id, entry] of this.prompts) if (entry.agent === name) this.prompts.delete(id);
  }

  /** @param {string} status @param {string} result @param {string} error @param {number} at */
  #ended(status, result, error, at) {
    Object.assign(this, { status, result, error, endedAt: at });
    this.prompts.clear();
    for (const agent of this.agents.values()) {
      this.#close(agent, at);
      if (agent.state !== "next") agent.state = agent.state === "done" ? "done" : status === "completed" ? "done" : status === "error" ? "failed" : "stopped";
    }
    for (const round of this.rounds) round.to ??= at;
    for (const step of this.steps) if (step.to === null) Object.assign(step, { to: at, state: status === "error" ? "failed" : "stopped" });
    // A fork was not stopped by anybody: it begins there.
    const forked = /^CANCELLED: (Forked from .* after step ".*"\.)/s.exec(error)?.[1];
    this.#add(forked ? { at, agent: "", kind: "segment", text: forked } : { at, agent: "", kind: status === "completed" ? "result" : "error", text: result || error });
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
