/** What the daemon is doing: one look at everything, then every change as it happens. */
import { batch, computed, signal } from "./html.js";

/** @typedef {{ kind: string, id: string, ts: string, [name: string]: any }} FeedEvent */

const KEPT_EVENTS = 10_000;
/** An hour of them. */
const KEPT_FIGURES = 720;

/** @type {import("../vendor/signals.js").Signal<"connecting" | "live" | "gone">} */
export const link = signal("connecting");
/** When the daemon was last heard, in milliseconds. */
export const heard = signal(Date.now());
/** @type {import("../vendor/signals.js").Signal<Map<string, any>>} */
export const topics = signal(new Map());
/** @type {import("../vendor/signals.js").Signal<Map<string, any>>} */
export const runs = signal(new Map());
/** @type {import("../vendor/signals.js").Signal<Map<string, any>>} */
export const waiting = signal(new Map());
/** Prompts and questions that are over, with how they ended, until the page forgets them. */
export const resolved = signal(new Map());
/** @type {import("../vendor/signals.js").Signal<Map<string, any>>} */
export const gate = signal(new Map());
/** @type {import("../vendor/signals.js").Signal<any[]>} */
export const figures = signal([]);
/** @type {import("../vendor/signals.js").Signal<FeedEvent[]>} */
export const events = signal([]);
export const daemon = signal({ version: "", pid: 0 });

/** How prompts ended, by their key, as far as the feed reaches back. @type {() => Map<string, FeedEvent>} */
export const resolutions = () => resolvedEvents.value;
const resolvedEvents = computed(() => new Map(events.value.filter((each) => each.kind === "run.resolved").map((each) => [promptKey(/** @type {any} */ (each)), each])));

/** @param {{ user: string, topic: string }} of */
export const topicKey = ({ user, topic }) => `${user}\n${topic}`;
/** @param {{ runId: string, requestId: string }} of */
export const promptKey = ({ runId, requestId }) => `${runId}\n${requestId}`;

/** @type {FeedEvent[]} */
let arrived = [];
let scheduled = false;
let looked = 0;
/** @type {EventSource | null} */
let source = null;
/** @type {Set<(event: FeedEvent) => void>} */
const listeners = new Set();

/** Hear every event as it is applied. @param {(event: FeedEvent) => void} listener */
export function listen(listener) {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

const RETRY_MS = 1000;
const LONGEST_RETRY_MS = 8000;
let retry = 0;
let wait = RETRY_MS;
/** When the daemon is looked for again, in milliseconds; 0 while it is there. */
export const nextTry = signal(0);

/** Begin, or look for a daemon that was gone. */
export async function follow() {
  clearTimeout(retry);
  try {
    const position = await look();
    open(position);
    wait = RETRY_MS;
    nextTry.value = 0;
  } catch {
    again();
  }
}

function again() {
  source?.close();
  link.value = "gone";
  clearTimeout(retry);
  retry = setTimeout(follow, wait);
  nextTry.value = Date.now() + wait;
  wait = Math.min(LONGEST_RETRY_MS, wait * 2);
}

/** Read how everything is now; returns where the feed continues. */
async function look() {
  const answer = await fetch("/overview");
  if (!answer.ok) throw new Error(`/overview answered ${answer.status}`);
  const seen = await answer.json();
  batch(() => {
    daemon.value = { version: seen.version, pid: seen.pid };
    topics.value = new Map(seen.topics.map((/** @type {any} */ each) => [topicKey(each), each]));
    markBusy(topics.value, seen.health);
    runs.value = new Map(seen.runs.map((/** @type {any} */ each) => [each.runId, each]));
    waiting.value = new Map(seen.waiting.map((/** @type {any} */ each) => [promptKey(each), each]));
    gate.value = new Map(seen.gate.map((/** @type {any} */ each) => [each.requestId, each]));
    figures.value = [...figures.value, seen.health].slice(-KEPT_FIGURES);
    heard.value = Date.now();
  });
  return seen.position;
}

/** @param {string} id */
const numberOf = (id) => Number(id.slice(id.lastIndexOf("-") + 1));

/** @param {string} position */
function open(position) {
  source?.close();
  // What is older than the look at everything is only listed.
  looked = numberOf(position);
  // What an earlier daemon said is kept; this one tells the rest again.
  const mine = position.replace(/\d+$/, "");
  events.value = events.value.filter((event) => !event.id.startsWith(mine));
  source = new EventSource(`/events?after=${encodeURIComponent(position.replace(/\d+$/, "0"))}`);
  source.onopen = () => (link.value = "live");
  // Everything is looked at again rather than resumed: the daemon may be another one by then.
  source.onerror = again;
  for (const kind of KINDS) source.addEventListener(kind, take);
}

const KINDS = [
  "topic.created", "topic.executing", "topic.done", "topic.closed",
  "run.state", "run.step", "run.waiting", "run.resolved",
  "gate.asked", "gate.decided", "gate.ended", "daemon.health", "feed.missed",
];

/** @param {MessageEvent<string>} message */
function take(message) {
  arrived.push(JSON.parse(message.data));
  if (scheduled) return;
  scheduled = true;
  // Many events are one change of the page.
  if (document.visibilityState === "visible") requestAnimationFrame(apply);
  else setTimeout(apply, 500);
}

function apply() {
  scheduled = false;
  const taken = arrived;
  arrived = [];
  batch(() => {
    const next = {
      topics: new Map(topics.value), runs: new Map(runs.value), waiting: new Map(waiting.value),
      resolved: new Map(resolved.value), gate: new Map(gate.value),
    };
    for (const event of taken) if (numberOf(event.id) > looked) change(next, event);
    topics.value = next.topics;
    runs.value = next.runs;
    waiting.value = next.waiting;
    resolved.value = next.resolved;
    gate.value = next.gate;
    remember(taken.filter((event) => event.kind === "daemon.health" && numberOf(event.id) <= looked));
    const told = taken.filter((event) => event.kind !== "daemon.health");
    if (told.length) events.value = [...events.value, ...told].slice(-KEPT_EVENTS);
    link.value = "live";
    heard.value = Date.now();
  });
  // The ring does not reach back to the first event: that is not news on the first connection.
  if (taken.some((event) => event.kind === "feed.missed" && (event.why === "restarted" || numberOf(event.id) > looked))) follow();
  for (const event of taken) if (numberOf(event.id) > looked) for (const listener of listeners) listener(event);
}

/** @param {any} next @param {FeedEvent} event */
function change(next, event) {
  const topic = event.topic === undefined ? "" : topicKey(/** @type {any} */ (event));
  const known = next.topics.get(topic);
  switch (event.kind) {
    case "topic.created":
      next.topics.set(topic, newTopic(event));
      break;
    case "topic.closed":
      next.topics.delete(topic);
      break;
    case "topic.executing":
      next.topics.set(topic, {
        ...(known ?? newTopic(event)), executing: true,
        running: [...(known?.running ?? []), event],
      });
      break;
    case "topic.done": {
      const running = (known?.running ?? []).filter((/** @type {any} */ each) => each.number !== event.number);
      next.topics.set(topic, { ...(known ?? newTopic(event)), executing: running.length > 0, running, last: event });
      break;
    }
    case "run.state":
      changeRun(next, event);
      break;
    case "run.step":
      if (next.runs.has(event.runId))
        next.runs.set(event.runId, { ...next.runs.get(event.runId), step: event.step, stepState: event.state });
      break;
    case "run.waiting":
      next.waiting.set(promptKey(/** @type {any} */ (event)), event);
      break;
    case "run.resolved": {
      const key = promptKey(/** @type {any} */ (event));
      if (next.waiting.has(key)) next.resolved.set(key, { ...next.waiting.get(key), answer: event.answer, by: event.by });
      next.waiting.delete(key);
      break;
    }
    case "gate.asked":
      next.gate.set(event.requestId, event);
      break;
    case "gate.decided":
    case "gate.ended":
      next.gate.delete(event.requestId);
      break;
    case "daemon.health":
      figures.value = [...figures.value, event].slice(-KEPT_FIGURES);
      markBusy(next.topics, event);
      break;
  }
}

/** Figures from before the page was opened. @param {FeedEvent[]} older */
function remember(older) {
  const known = new Set(figures.value.map((each) => each.id));
  const missing = older.filter((each) => !known.has(each.id));
  if (missing.length) figures.value = [...missing, ...figures.value].sort((a, b) => (a.ts < b.ts ? -1 : 1)).slice(-KEPT_FIGURES);
}

/** A command may live on in its shell after its reply; only the daemon's look tells. @param {Map<string, any>} known @param {any} health */
function markBusy(known, health) {
  const busy = new Set((health.busyShells ?? []).map((/** @type {[string, string]} */ [user, topic]) => topicKey({ user, topic })));
  for (const [key, each] of known) if (each.type === "bash" && Boolean(each.busy) !== busy.has(key)) known.set(key, { ...each, busy: busy.has(key) });
}

/** @param {any} next @param {FeedEvent} event */
function changeRun(next, event) {
  if (event.status === "deleted") {
    next.runs.delete(event.runId);
    return;
  }
  const ended = !["pending", "running"].includes(event.status);
  const before = next.runs.get(event.runId) ?? { runId: event.runId, startedAt: event.ts };
  next.runs.set(event.runId, {
    ...before,
    strategyName: event.strategy || before.strategyName,
    status: event.status,
    result: event.result,
    error: event.error,
    ...(event.status === "pending" ? { startedAt: event.ts } : {}),
    ...(ended ? { completedAt: event.ts } : { completedAt: undefined }),
  });
}

/** @param {FeedEvent} event */
function newTopic(event) {
  const type = String(event.topic).split(":", 1)[0];
  return {
    user: event.user, topic: event.topic, type, detail: "", uri: "", title: "",
    executing: false, queued: 0, running: [], last: null,
  };
}
