/** What happened as rows of a list: of the feed, or of one run. Pure. */
import { firstLine, shortId, shown } from "./text.js";

/** @typedef {import("./feed.js").FeedEvent} FeedEvent */
/** @typedef {import("./parts/mark.js").MarkName} MarkName */
/**
 * `noise` is what a row belongs to that nobody reads one by one.
 * @typedef {{ id: string, ts: string, kind: string, mark: MarkName, state: string, who: string, what: string, ms: number, size: number, agent: string, tool: string, noise: string, of: any, then?: any }} Row
 * @typedef {{ id: string, count: number, words: string, ms: number, noise: Row[] }} Folded
 */

/** @param {FeedEvent} event @returns {[MarkName, string]} */
function state(event) {
  switch (event.kind) {
    case "topic.done": return event.ok ? ["done", "done"] : ["failed", "failed"];
    case "topic.executing": return ["working", "began"];
    case "run.waiting": return ["waits", "waits"];
    case "run.resolved": return String(event.answer).startsWith("deny") ? ["denied", "denied"] : event.answer ? ["done", "answered"] : ["stopped", "not answered"];
    case "run.state": return event.status === "error" ? ["failed", "failed"] : event.status === "completed" ? ["done", "done"] : event.status === "running" ? ["working", "began"] : event.status === "pending" ? ["next", "ready"] : ["stopped", event.status === "deleted" ? "deleted" : "stopped"];
    case "run.step": return event.state === "started" ? ["working", "began"] : ["done", "done"];
    case "gate.asked": return ["gate", "asked"];
    case "gate.decided": return event.decision === "approved" ? ["done", "approved"] : event.decision === "denied" ? ["denied", "denied"] : ["stopped", "nobody"];
    case "gate.ended": return event.how === "finished" && event.exitCodes.every((/** @type {number} */ code) => code === 0) ? ["done", "done"] : ["failed", event.how];
    default: return ["idle", ""];
  }
}

/** @param {FeedEvent} event */
function what(event) {
  switch (event.kind) {
    case "topic.done":
    case "topic.executing": return firstLine(`${event.command}${event.code ? `  ${event.code}` : ""}`);
    case "run.state": return firstLine(`${shortId(event.runId)} ${event.error || event.result || event.status}`);
    case "run.step": return firstLine(`${shortId(event.runId)} ${event.step}`);
    case "run.waiting": return firstLine(event.text || `${event.tool} ${event.resource}`);
    case "run.resolved": return firstLine(`${event.answer || "nobody answered"}${event.by ? ` by ${event.by}` : ""}`);
    case "gate.asked": return firstLine(event.stages.map((/** @type {string[]} */ stage) => stage.join(" ")).join(" | "));
    case "gate.decided": return firstLine(`${event.decision} ${event.note}`);
    case "gate.ended": return firstLine(`${event.how} ${event.exitCodes.join(" ")} ${event.message}`);
    case "feed.missed": return event.why === "restarted" ? "the daemon was started again" : `${event.count} events were missed`;
    default: return "";
  }
}

/** That something began is noise once it ended. @param {FeedEvent} event */
function beginning(event) {
  const began = event.kind === "topic.created" || event.kind === "topic.executing" || (event.kind === "run.step" && event.state === "started") || (event.kind === "run.state" && ["pending", "running"].includes(event.status));
  return began ? "beginning" : "";
}

/** @type {WeakMap<FeedEvent, Row>} */
const known = new WeakMap();

/** @param {FeedEvent} event @returns {Row} */
export function feedRow(event) {
  let row = known.get(event);
  if (!row) {
    const [mark, word] = state(event);
    row = {
      id: event.id, ts: event.ts, kind: event.kind, mark, state: word, who: shown(event.agent ?? event.topic ?? event.strategy ?? event.session ?? ""), what: what(event),
      ms: event.ms ?? 0, size: 0, agent: event.agent ?? "", tool: event.tool ?? "", noise: beginning(event), of: event,
    };
    known.set(event, row);
  }
  return row;
}

const MAIN = ["command", "path", "file_path", "url", "query", "pattern", "text", "question", "cmd"];

/** What a run said and did, a row each. */
export class RunLog {
  constructor() {
    this.seq = 0;
    /** @type {Row[]} */ this.rows = [];
    /** @type {Map<string, Row>} */ this.open = new Map();
  }

  /** @param {any} message a broadcast of the run; what was heard before counts once */
  take(message) {
    if (typeof message.seq !== "number" || message.seq <= this.seq) return;
    this.seq = message.seq;
    if (message.type === "agent_streaming") return this.#streamed(message);
    const agent = message.agentName ?? "";
    switch (message.type) {
      case "strategy_started": return void this.#add(message, "run.state", "working", "began", { who: message.strategyName, what: shown(message.strategyName) });
      case "strategy_completed": return void this.#add(message, "run.state", "done", "done", { what: firstLine(message.result) });
      case "strategy_error": return void this.#add(message, "run.state", message.error.code === "CANCELLED" ? "stopped" : "failed", message.error.code === "CANCELLED" ? "stopped" : "failed", { what: firstLine(`${message.error.code}: ${message.error.message}`) });
      case "step_started": return void this.open.set(`step ${message.stepName}`, this.#add(message, "run.step", "working", "working", { who: message.stepName, what: firstLine(message.message) }));
      case "step_completed": return this.#end(`step ${message.stepName}`, message, { mark: "done", state: "done", what: firstLine(message.result.text) });
      case "request_permission": return void this.#add(message, "run.prompt", "waits", "asked", { agent, tool: message.toolName ?? "", what: firstLine(`${message.toolName ?? ""} ${message.resource}`) });
      case "request_question":
      case "request_input": return void this.#add(message, "run.prompt", "waits", "asked", { agent, what: firstLine(message.question ?? message.prompt ?? "") });
      case "agent_output": return void this.#add(message, "run.model", "done", "done", { agent, what: `${message.usage.promptTokens} tokens in, ${message.usage.completionTokens} out`, size: message.text?.length ?? 0 });
      default: return void this.#add(message, `run.${message.type}`, "idle", "", { agent, what: firstLine(message.text ?? message.message ?? "") });
    }
  }

  /** @param {any} message */
  #streamed(message) {
    const [agent, event] = [message.agentName, message.event];
    switch (event.type) {
      case "tool-call": {
        const args = parsed(event.args);
        const main = args && typeof args === "object" ? MAIN.find((name) => typeof args[name] === "string") : undefined;
        const row = this.#add(message, "run.tool", "working", "working", { agent, tool: event.toolName, what: firstLine(`${event.toolName} ${main ? args[main] : ""}`) });
        this.open.set(`${agent} ${event.toolCallId}`, row);
        return;
      }
      case "tool-result": {
        const bad = event.status === "error" || /^Error \(\w+\): /.test(event.output ?? "");
        return this.#end(`${agent} ${event.toolCallId}`, message, { mark: bad ? "failed" : "done", state: bad ? "failed" : "done", size: event.output?.length ?? 0 });
      }
      case "text": return void this.#add(message, "run.text", "idle", "", { agent, what: firstLine(event.text), noise: "text piece" });
      case "thinking": return void this.#add(message, "run.thinking", "idle", "", { agent, what: firstLine(event.text), noise: "thought" });
      // That a model begins and ends is said by what comes between; what it notes is told.
      default: if (event.note) this.#add(message, `run.${event.type}`, "idle", "", { agent, what: firstLine(event.note) });
    }
  }

  /** @param {any} of @param {string} kind @param {MarkName} mark @param {string} word @param {Partial<Row>} more @returns {Row} */
  #add(of, kind, mark, word, more) {
    const row = { id: String(of.seq), ts: of.ts, kind, mark, state: word, who: shown(more.agent ?? ""), what: "", ms: 0, size: 0, agent: "", tool: "", noise: "", of, ...more };
    this.rows.push(row);
    return row;
  }

  /** @param {string} key @param {any} message @param {Partial<Row>} more */
  #end(key, message, more) {
    const row = this.open.get(key);
    if (!row) return;
    this.open.delete(key);
    Object.assign(row, more, { ms: Date.parse(message.ts) - Date.parse(row.ts), then: message });
  }
}

/** @param {string} text */
function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

/** What nobody reads one by one becomes one line that says how much it is. @param {Row[]} rows @returns {(Row | Folded)[]} */
export function folded(rows) {
  /** @type {(Row | Folded)[]} */
  const made = [];
  /** @type {Row[]} */
  let quiet = [];
  const flush = () => {
    const [first, last] = [quiet[0], quiet.at(-1)];
    if (first && last) made.push({ id: `noise ${first.id}`, count: quiet.length, words: words(quiet), ms: Date.parse(last.ts) - Date.parse(first.ts), noise: quiet });
    quiet = [];
  };
  for (const row of rows) {
    if (row.noise) quiet.push(row);
    else {
      flush();
      made.push(row);
    }
  }
  flush();
  return made;
}

/** @param {Row[]} rows */
function words(rows) {
  /** @type {Map<string, number>} */
  const counts = new Map();
  for (const { noise } of rows) counts.set(noise, (counts.get(noise) ?? 0) + 1);
  const who = [...new Set(rows.map((row) => row.agent).filter(Boolean))];
  const parts = [...counts].map(([name, count]) => `${count} ${name}${count === 1 ? "" : "s"}`);
  return `${parts.join(", ")}${who.length ? ` of ${who.slice(0, 3).map(shown).join(", ")}${who.length > 3 ? " and others" : ""}` : ""}`;
}
