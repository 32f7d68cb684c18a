/** Every open topic, by user. */
import { html, signal, useEffect, useRef } from "../html.js";
import { topicKey, topics } from "../feed.js";
import { offer } from "../keys.js";
import { listKeys, rowId } from "../list_keys.js";
import { Mark } from "../parts/mark.js";
import { topicState } from "../parts/topic_list.js";
import { go, path, query, setQuery, to } from "../route.js";
import { firstLine, shown } from "../text.js";
import { Age } from "../time.js";

const FILTERS = /** @type {[string, (topic: any) => boolean][]} */ ([
  ["All", () => true],
  ["Working", (topic) => topicState(topic)[0] === "working"],
  ["Shells", (topic) => topic.type === "bash"],
  ["Failed", (topic) => topicState(topic)[0] === "failed"],
]);
const SHOWN = 500;

export const topicsKeys = /** @type {[string, string][]} */ ([["j k", "move"], ["Enter", "open"], ["c", "new"], ["f", "filter"], ["?", "keys"]]);

const current = signal("");

/** The keys of one topic. @returns {[string, string][]} */
export const topicKeys = () => path.value[2]?.startsWith("bash:")
  ? [["i", "type"], ["Ctrl ]", "leave terminal"], ["Ctrl C", "interrupt"], ["?", "keys"]]
  : [["`", "console"], ["a", "actions"], ["e", "edit"], ["b", "back"], ["j k", "block"], ["?", "keys"]];

export function Topics() {
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const listed = useRef(/** @type {any[]} */ ([]));
  useEffect(() => {
    const create = () => document.getElementById("new-topic")?.focus();
    if (query.value.get("new")) {
      setQuery("new", null);
      create();
    }
    return offer("topics", [
      ...listKeys(current, () => listed.current, topicKey, (topic) => go(to("topic", topic.user, topic.topic))),
      { key: "c", what: "open another topic", run: create },
      { key: "f", what: "filter", run: () => field.current?.focus() },
    ]);
  }, []);
  const wanted = (query.value.get("q") ?? "").toLowerCase();
  const show = query.value.get("show") ?? "All";
  const fits = FILTERS.find(([name]) => name === show)?.[1] ?? (() => true);
  const all = [...topics.value.values()];
  const found = all.filter((each) => fits(each) && (!wanted || `${each.user} ${each.topic} ${each.title} ${each.uri} ${each.last?.command ?? ""}`.toLowerCase().includes(wanted)));
  const users = [...new Set(found.map((each) => each.user))];
  listed.current = users.flatMap((user) => found.filter((each) => each.user === user).slice(0, SHOWN));
  return html`<header class="head"><h1>Topics</h1><span class="quiet">${all.length}</span>
      <input ref=${field} class="field" type="search" placeholder="Filter by name, document, command" aria-label="Filter topics" value=${query.value.get("q") ?? ""} onInput=${(/** @type {any} */ e) => setQuery("q", e.target.value)} />
      <div class="choice" role="group" aria-label="Show">${FILTERS.map(([name, test]) => html`<button aria-pressed=${show === name} onClick=${() => setQuery("show", name === "All" ? null : name)}>${name} ${all.filter(test).length}</button>`)}</div></header>
    <div class="scroll">${found.length ? users.map((user) => html`<section class="of-user" key=${user} aria-label=${`Topics of ${shown(user)}`}><h2>${shown(user)} <span class="quiet">${found.filter((each) => each.user === user).length}</span></h2>
        <${Table} topics=${found.filter((each) => each.user === user).slice(0, SHOWN)} /></section>`) : html`<${Empty} filtered=${all.length > 0} />`}
      <${Open} /></div>`;
}

/** @param {{ filtered: boolean }} props */
function Empty({ filtered }) {
  return html`<div class="empty"><h2>${filtered ? "No topic is like that." : "No topic is open."}</h2><p>${filtered ? "Another filter may find it." : "A topic is a place where commands run in order: a document with its actions, an app, a shell. The first command in it opens it."}</p>
    ${!filtered && html`<ul><li><code>string file:main /open README.md</code> opens a document</li><li><code>string bash:dev ls</code> starts a shell</li></ul>`}</div>`;
}

/** @param {{ topics: any[] }} props */
function Table({ topics: mine }) {
  return html`<table class="table topics-table"><thead><tr><th>topic</th><th class="wide">shows</th><th>last</th><th>state</th><th class="figure">when</th></tr></thead>
    <tbody>${mine.map((topic) => html`<${TopicTr} key=${topic.topic} topic=${topic} />`)}</tbody></table>`;
}

/** Drawn again only when its topic changed. @param {{ topic: any }} props */
function TopicTr({ topic }) {
  const [mark, word] = topicState(topic);
  const last = topic.running?.at(-1) ?? topic.last;
  const key = topicKey(topic);
  return html`<tr id=${rowId(key)} class=${current.value === key ? "current" : ""} onClick=${() => go(to("topic", topic.user, topic.topic))}>
    <td><a class="mono" href=${to("topic", topic.user, topic.topic)}>${shown(topic.topic)}</a></td>
    <td class="wide cut">${shown(topic.title || topic.detail.replace(/^(current|cwd): /, ""))}</td>
    <td class="mono cut">${last ? firstLine(last.command) : ""}</td>
    <td class="state"><${Mark} of=${mark} /> <span class=${mark === "failed" ? "bad" : ""}>${word || "idle"}${mark === "failed" && topic.last.code ? html` <span class="quiet">${shown(topic.last.code)}</span>` : ""}</span></td>
    <td class="figure">${topic.last?.ts ? html`<${Age} at=${topic.last.ts} />` : ""}</td></tr>`;
}

/** Open a topic by its name, of a user there is. */
function Open() {
  const users = [...new Set([...topics.value.values()].map((each) => each.user))];
  /** @param {any} event */
  const open = (event) => {
    event.preventDefault();
    const typed = new FormData(event.target);
    const name = String(typed.get("topic")).trim();
    if (name) go(to("topic", String(typed.get("user")), name.includes(":") ? name : `file:${name}`));
  };
  if (!users.length) return null;
  return html`<form class="open-topic" onSubmit=${open}><label for="new-topic">New topic</label><input class="field mono" id="new-topic" name="topic" placeholder="file:notes or bash:dev" autocomplete="off" />
    <select class="field" name="user" aria-label="User">${users.map((each) => html`<option value=${each}>${shown(each)}</option>`)}</select><button class="button">Open</button></form>`;
}
