/** The open topics by their kind, and for several users by user. */
import { html } from "../html.js";
import { topics } from "../feed.js";
import { to } from "../route.js";
import { shown } from "../text.js";
import { now, clock } from "../time.js";
import { Mark } from "./mark.js";

const KINDS = ["file", "app", "web", "bash"];

/** @param {any} topic @returns {["working" | "failed" | "idle", string]} */
export function topicState(topic) {
  const running = topic.running?.at(-1);
  if (running) {
    const since = Date.parse(running.ts ?? "");
    const wait = topic.queued ? `, ${topic.queued} wait` : "";
    return ["working", `working${Number.isNaN(since) ? "" : ` ${clock(now.value - since)}`}${wait}`];
  }
  if (topic.busy) return ["working", "working"];
  return topic.last && !topic.last.ok ? ["failed", "failed"] : ["idle", ""];
}

/** @param {{ user?: string, topic?: string }} props which is open */
export function TopicList({ user, topic }) {
  const all = [...topics.value.values()];
  const users = [...new Set(all.map((each) => each.user))];
  return html`<nav class="topic-list" aria-label="Topics"><h2>Topics <span class="quiet">${all.length}</span><a class="end" href=${to("topics")}>All</a></h2>
    <div class="scroll">${users.map((owner) => html`${users.length > 1 && html`<h3 class="cut">${shown(owner)}</h3>`}
      ${KINDS.map((kind) => {
        const mine = all.filter((each) => each.user === owner && each.type === kind);
        if (!mine.length) return null;
        return html`<h4 class="quiet">${kind}</h4><ul>${mine.map((each) => html`<${Item} key=${each.topic} topic=${each} current=${each.user === user && each.topic === topic} />`)}</ul>`;
      })}`)}</div></nav>`;
}

/** @param {{ topic: any, current: boolean }} props */
function Item({ topic, current }) {
  const [mark, word] = topicState(topic);
  return html`<li><a class=${`row${current ? " current chosen" : ""}`} href=${to("topic", topic.user, topic.topic)} aria-current=${current ? "page" : undefined}>
    <${Mark} of=${mark} say=${word ? undefined : "idle"} /><span class="mono cut">${shown(topic.topic.slice(topic.type.length + 1))}</span>${word && html`<span class=${mark === "failed" ? "bad" : "quiet"}>${word}</span>`}</a></li>`;
}
