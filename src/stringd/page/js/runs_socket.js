/** The runs protocol on one WebSocket for the whole page: requests, and runs that are followed. */
import { signal } from "./html.js";

/** @typedef {{ type: string, runId?: string, requestId?: any, [name: string]: any }} Message */

export const connected = signal(false);

/** @type {WebSocket | null} */
let socket = null;
/** @type {Promise<WebSocket> | null} */
let opening = null;
let number = 0;
/** @type {Map<string, { resolve: (message: Message) => void, reject: (error: Error) => void }>} */
const asked = new Map();
/** @type {Map<string, Set<(message: Message) => void>>} */
const followers = new Map();

/** @returns {Promise<WebSocket>} */
function open() {
  if (socket?.readyState === WebSocket.OPEN) return Promise.resolve(socket);
  opening ??= new Promise((resolve, reject) => {
    const made = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/ws`);
    made.onopen = () => {
      socket = made;
      opening = null;
      connected.value = true;
      resolve(made);
    };
    made.onmessage = ({ data }) => take(JSON.parse(data));
    made.onclose = () => {
      socket = null;
      opening = null;
      connected.value = false;
      for (const [id, each] of asked) {
        asked.delete(id);
        each.reject(new Error("The daemon closed the connection"));
      }
      reject(new Error("The daemon cannot be reached"));
    };
  });
  return opening;
}

/** @param {Message} message */
function take(message) {
  const waiting = typeof message.requestId === "string" ? asked.get(message.requestId) : undefined;
  if (waiting) {
    asked.delete(message.requestId);
    if (message.type === "error") waiting.reject(new Error(`${message.code}: ${message.message}`));
    else waiting.resolve(message);
  }
  const runId = message.runId ?? message.run?.runId;
  for (const each of followers.get(runId ?? "") ?? []) each(message);
}

/** Send without expecting an answer. @param {Message} message */
export async function tell(message) {
  (await open()).send(JSON.stringify(message));
}

/**
 * Send a request and wait for what answers it; an error of the daemon is thrown.
 * @param {Message} message @returns {Promise<Message>}
 */
export async function ask(message) {
  const ready = await open();
  const requestId = `page-${++number}`;
  return new Promise((resolve, reject) => {
    asked.set(requestId, { resolve, reject });
    ready.send(JSON.stringify({ ...message, requestId }));
  });
}

/**
 * Send something that is answered only when it fails, and wait until the daemon has read it.
 * @param {Message} message
 */
export async function command(message) {
  const ready = await open();
  const requestId = `page-${++number}`;
  const failed = new Promise((_, reject) => asked.set(requestId, { resolve: () => {}, reject }));
  ready.send(JSON.stringify({ ...message, requestId }));
  await Promise.race([failed, ask({ type: "ping" })]);
  asked.delete(requestId);
}

/**
 * Hear everything a run says, from its broadcast of that number on; returns how to stop.
 * @param {string} runId @param {(message: Message) => void} listener @param {number} [fromSeq]
 */
export function followRun(runId, listener, fromSeq) {
  const mine = followers.get(runId) ?? new Set();
  followers.set(runId, mine.add(listener));
  const from = fromSeq === undefined ? {} : { fromSeq };
  tell({ type: "subscribe", runId, ...from }).catch(() => {});
  return () => {
    mine.delete(listener);
    if (mine.size) return;
    followers.delete(runId);
    tell({ type: "unsubscribe", runId }).catch(() => {});
  };
}
