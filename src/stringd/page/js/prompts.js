/** What waits for the owner: prompts of runs, questions at the gate, runs that failed. */
import { computed, signal } from "./html.js";
import { gate, promptKey, resolved, runs, waiting } from "./feed.js";
import { ask, command, followRun, tell } from "./runs_socket.js";

/**
 * @typedef {{
 *   key: string, kind: "permission" | "question" | "input" | "gate" | "failed", at: string,
 *   runId?: string, of: any, over?: { answer: string, by: string },
 * }} Waiting
 */

/** Failed runs the owner has looked at or put away. */
const seenFailures = signal(new Set(JSON.parse(sessionStorage.getItem("seen-failures") ?? "[]")));
/** Prompts that stay in view although they are over, because they are open. */
const held = signal(/** @type {Set<string>} */ (new Set()));

/** Everything that waits, oldest first. */
export const inbox = computed(() => {
  /** @type {Waiting[]} */
  const items = [];
  for (const [key, each] of waiting.value) items.push({ key, kind: each.prompt, at: each.ts, runId: each.runId, of: each });
  for (const key of held.value) {
    const over = resolved.value.get(key);
    if (over && !waiting.value.has(key))
      items.push({ key, kind: over.prompt, at: over.ts, runId: over.runId, of: over, over: { answer: over.answer, by: over.by } });
  }
  for (const [key, each] of gate.value) items.push({ key: `gate ${key}`, kind: "gate", at: each.ts, of: each });
  for (const each of runs.value.values())
    if (each.status === "error" && !seenFailures.value.has(each.runId))
      items.push({ key: `failed ${each.runId}`, kind: "failed", at: each.completedAt ?? each.startedAt, runId: each.runId, of: each });
  return items.sort((a, b) => (a.at < b.at ? -1 : a.at > b.at ? 1 : 0));
});

/** How many wait for an answer. */
export const wanted = computed(() => inbox.value.filter((each) => !each.over).length);

/** @param {string} runId */
export function putAway(runId) {
  const next = new Set(seenFailures.value).add(runId);
  seenFailures.value = next;
  sessionStorage.setItem("seen-failures", JSON.stringify([...next]));
}

/** Keep a prompt in view while it is open. @param {string} key */
export function hold(key) {
  held.value = new Set(held.value).add(key);
  return () => {
    const next = new Set(held.value);
    next.delete(key);
    held.value = next;
  };
}

/**
 * The whole prompt as its run sent it; the feed carries only its beginning.
 * @param {any} prompt @param {(whole: any) => void} found
 */
export function whole(prompt, found) {
  if (isInterrupted(prompt)) {
    ask({ type: "get_timeline", runId: prompt.runId }).then((run) => {
      const kept = run.waiting?.find((/** @type {any} */ each) => each.requestId === prompt.requestId);
      if (kept) found(kept);
    }).catch(() => {});
    return () => {};
  }
  return followRun(prompt.runId, (message) => {
    const id = message.type === "request_input" ? `input:${message.agentName}` : message.requestId;
    if (message.type?.startsWith("request_") && id === prompt.requestId) found(message);
  });
}

/** Whether the run that asked ended with an earlier life of the daemon. @param {any} prompt */
export const isInterrupted = (prompt) => !runs.value.has(prompt.runId);

/** Let an interrupted run go on; it takes the answers given meanwhile. @param {string} runId */
export async function resume(runId) {
  await ask({ type: "prepare_run", runId });
  await tell({ type: "continue_run", runId, input: "", resume: true });
}

/** @typedef {"allow" | "allow-session" | "deny" | "deny-session"} Decision */

/** @param {any} prompt @param {Decision} decision @param {string} [reason] @param {string} [edited] the command to run instead */
export function decide(prompt, decision, reason, edited) {
  return command({
    type: "permission_decision", runId: prompt.runId, permissionRequestId: prompt.requestId, decision,
    ...(reason ? { reason } : {}), ...(edited ? { command: edited } : {}),
  });
}

/** Answer a question or give the input that is wanted. @param {any} prompt @param {string} text */
export function reply(prompt, text) {
  return prompt.prompt === "question"
    ? command({ type: "question_response", runId: prompt.runId, questionRequestId: prompt.requestId, response: text })
    : command({ type: "user_input", runId: prompt.runId, agentName: prompt.agent, text });
}

export { promptKey };
