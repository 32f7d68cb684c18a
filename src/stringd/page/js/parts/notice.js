/** What starts to wait while one looks elsewhere: a toast here, and a notice of the browser if asked for. */
import { effect, html, signal, useEffect } from "../html.js";
import { link } from "../feed.js";
import { isTyping } from "../keys.js";
import { inbox } from "../prompts.js";
import { go, path, query, to } from "../route.js";
import { firstLine, shown } from "../text.js";
import { Mark } from "./mark.js";

/** @typedef {import("../prompts.js").Waiting} Waiting */

/** @type {import("../../vendor/signals.js").Signal<Waiting | null>} */
const latest = signal(null);
const permission = signal("Notification" in window ? Notification.permission : "denied");
/** @type {Set<string> | null} */
let known = null;

/** @param {Waiting} item */
const who = ({ kind, of }) => (kind === "gate" ? "The gate" : shown(of.strategy || of.strategyName));

/** @param {Waiting} item */
function what({ kind, of }) {
  if (kind === "gate") return of.stages.map((/** @type {string[]} */ stage) => stage.map(shown).join(" ")).join(" | ");
  if (kind === "failed") return firstLine(of.error);
  return kind === "permission" ? firstLine(`${of.agent} asks: ${of.tool} ${of.resource}`) : firstLine(`${of.agent} asks: ${of.text || "your next words"}`);
}

/** Where it is answered. @param {Waiting} item */
const place = (item) => `${to("")}?open=${encodeURIComponent(item.key)}`;

/** Whether the open view shows it anyway. @param {Waiting} item */
function inView(item) {
  return !path.value[0] || (path.value[0] === "run" && path.value[1] === item.runId) || (path.value[0] === "gate" && item.kind === "gate");
}

/** Hear what starts to wait; what waited before the page was opened is not news. */
function watch() {
  return effect(() => {
    const items = inbox.value.filter((each) => !each.over);
    if (link.value !== "live") return;
    const fresh = known ? items.filter((each) => !known?.has(each.key)) : [];
    known = new Set(items.map((each) => each.key));
    const shownNow = latest.peek();
    if (shownNow && !known.has(shownNow.key)) latest.value = null;
    const newest = fresh.at(-1);
    if (!newest) return;
    latest.value = newest;
    if (document.visibilityState === "hidden" && permission.peek() === "granted") notify(newest);
  });
}

/** @param {Waiting} item */
function notify(item) {
  const notice = new Notification(`${who(item)} ${item.kind === "failed" ? "failed" : "waits for you"}`, { body: what(item), tag: item.key, icon: "/ui/static/icon.svg" });
  notice.onclick = () => {
    window.focus();
    go(place(item));
    notice.close();
  };
}

export function Toast() {
  useEffect(watch, []);
  const item = latest.value;
  // Never over a field in use, and not for what is in view.
  if (!item || inView(item) || query.value.get("open") === item.key || isTyping(document.activeElement)) return null;
  return html`<div class="toast" role="status"><${Mark} of=${item.kind === "failed" ? "failed" : item.kind === "gate" ? "gate" : "waits"} />
    <span class="words"><b>${who(item)}</b> ${item.kind === "failed" ? "failed" : "waits for you"}<br /><span class="quiet">${what(item)}</span></span>
    <a class="button" href=${place(item)}>Open</a><button class="button plain" aria-label="Put away" onClick=${() => (latest.value = null)}>×</button></div>`;
}

/** Asked for once, by a click. */
export function AskForNotices() {
  if (permission.value !== "default") return null;
  const ask = async () => (permission.value = await Notification.requestPermission());
  return html`<button class="button plain" onClick=${ask}>Notify me</button>`;
}
