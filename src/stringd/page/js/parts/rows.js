/** Rows of runs, topics and shells, as lists everywhere show them. */
import { html } from "../html.js";
import { waiting } from "../feed.js";
import { to } from "../route.js";
import { firstLine, shortId, shown } from "../text.js";
import { Age, clock, now } from "../time.js";
import { Mark, runState } from "./mark.js";

/** @param {string} runId */
export const promptsOf = (runId) => [...waiting.value.values()].filter((each) => each.runId === runId);

/** @param {{ run: any }} props */
export function RunRow({ run }) {
  const asked = promptsOf(run.runId);
  const [mark, word] = runState(run.status, asked.length > 0);
  const end = run.completedAt ? Date.parse(run.completedAt) : now.value;
  const doing = asked[0]
    ? html`${shown(asked[0].agent)}: <code>${asked[0].prompt === "permission" ? firstLine(`${asked[0].tool} ${asked[0].resource}`) : `asks`}</code>`
    : run.status === "error" ? firstLine(run.error)
    : run.status === "completed" ? firstLine(run.result)
    : run.step ? html`${shown(run.step)}` : "";
  return html`<a class="row run" href=${to("run", run.runId)}>
    <${Mark} of=${mark} />
    <span class="name cut"><b>${shown(run.strategyName)}</b> <span class="quiet">${shortId(run.runId)}</span></span>
    <span class="took">${clock(end - Date.parse(run.startedAt))}</span>
    <span class="now cut">${doing}</span>
    <span class="state"><b class=${mark === "failed" ? "bad" : ""}>${word}</b> ${run.completedAt ? html`<${Age} at=${run.completedAt} /> ago` : asked[0] ? html`<${Age} at=${asked[0].ts} />` : ""}</span>
  </a>`;
}

/** @param {{ topic: any }} props */
export function TopicRow({ topic }) {
  const running = topic.running?.at(-1);
  const works = Boolean(running) || topic.busy;
  const failed = topic.last && !topic.last.ok && !works;
  const mark = works ? "working" : failed ? "failed" : "idle";
  return html`<a class="row topic" href=${to("topic", topic.user, topic.topic)}>
    <${Mark} of=${mark} say=${works ? undefined : failed ? "failed" : "idle"} />
    <span class="mono cut">${shown(topic.topic)}</span>
    <span class=${`cut${topic.type === "bash" ? " mono" : ""}`}>${running ? firstLine(running.command) : topic.last ? firstLine(topic.last.command) : shown(topic.title || topic.detail)}${failed ? html` <span class="bad">${topic.last.code}</span>` : ""}</span>
    <span class="age">${works ? html`<b>working</b>` : topic.last?.ts ? html`<${Age} at=${topic.last.ts} />` : ""}</span>
  </a>`;
}
