/** The page begins here: which view belongs to the address, and what surrounds it. */
import { effect, html, render, signal, useEffect } from "./html.js";
import { follow } from "./feed.js";
import { Gone, Navigation, Status } from "./parts/frame.js";
import { Toast } from "./parts/notice.js";
import { Overlays } from "./parts/palette.js";
import { wanted } from "./prompts.js";
import { path, to } from "./route.js";
import { compareKeys } from "./comparing.js";
import { Inbox, inboxKeys } from "./views/inbox.js";
import { Run, runKeys } from "./views/run.js";
import { Runs, runsKeys } from "./views/runs.js";
import { Topics, topicKeys, topicsKeys } from "./views/topics.js";

/** @typedef {{ name: string, view: () => any, keys: [string, string][] | (() => [string, string][]) }} View */

/**
 * A view that is loaded when it is first shown.
 * @param {() => Promise<() => any>} load
 */
function later(load) {
  const loaded = signal(/** @type {(() => any) | null} */ (null));
  return function Later() {
    useEffect(() => void (loaded.value ?? load().then((view) => (loaded.value = view))), []);
    return loaded.value ? html`<${loaded.value} />` : html`<div class="scroll" aria-busy="true"></div>`;
  };
}

/** @type {Record<string, View>} */
const VIEWS = {
  "": { name: "Inbox", view: Inbox, keys: inboxKeys },
  runs: { name: "Runs", view: Runs, keys: runsKeys },
  topics: { name: "Topics", view: Topics, keys: topicsKeys },
  topic: { name: "Topic", view: later(() => import("./views/topic.js").then((found) => found.TopicView)), keys: topicKeys },
  events: { name: "Events", view: later(() => import("./views/events.js").then((found) => found.Events)), keys: [["j k", "move"], ["f", "failed only"], ["u", "noise"], ["d", "download"], ["?", "keys"]] },
  health: { name: "Health", view: later(() => import("./views/health.js").then((found) => found.Health)), keys: [["v", "check again"], ["g i", "inbox"], ["?", "keys"]] },
  gate: { name: "Gate", view: later(() => import("./views/gate.js").then((found) => found.Gate)), keys: [["v", "check chain"], ["/", "search"], ["?", "keys"]] },
  compare: { name: "Compare", view: later(() => import("./views/compare.js").then((found) => found.Compare)), keys: compareKeys },
  run: { name: "Run", view: Run, keys: runKeys },
};

function Missing() {
  return html`<div class="empty"><h1>There is no such view.</h1><p>The address does not lead anywhere on this page.</p>
    <ul><li><a class="button yes" href=${to("")}>Inbox</a></li></ul></div>`;
}

function Page() {
  const found = VIEWS[path.value[0] ?? ""] ?? { name: "Not found", view: Missing, keys: [] };
  useEffect(() => effect(() => { document.title = `${wanted.value ? `(${wanted.value}) ` : ""}${found.name} · stringd`; }), [found]);
  return html`<${Navigation} /><${Gone} /><main><${found.view} /></main><${Status} keys=${typeof found.keys === "function" ? found.keys() : found.keys} /><${Toast} /><${Overlays} />`;
}

const root = document.getElementById("page");
if (root) render(html`<${Page} />`, root);
follow();
