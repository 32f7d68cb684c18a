/** One topic: its document with everything that can be done in it, or its terminal. */
import { html, useEffect, useMemo, useRef, useState } from "../html.js";
import { events } from "../feed.js";
import { exec } from "../exec.js";
import { offer } from "../keys.js";
import { ActionForm } from "../parts/action_form.js";
import { Console } from "../parts/console.js";
import { DocumentPage } from "../parts/document.js";
import { Editor } from "../parts/editor.js";
import { TopicList } from "../parts/topic_list.js";
import { path, query, setQuery, to } from "../route.js";
import { shown } from "../text.js";
import { useTopic } from "../topic_watch.js";
import { Shell } from "./shell.js";

/** @typedef {import("../parts/console.js").Entry} Entry */

export function TopicView() {
  const [, user = "", topic = ""] = path.value;
  const seen = useTopic(user, topic);
  return html`<div class="topic-frame"><${TopicList} user=${user} topic=${topic} />${
    seen.problem && !seen.view ? html`<${NotOpen} user=${user} topic=${topic} refresh=${seen.refresh} />`
    : !seen.view ? html`<section class="topic-main" aria-busy="true"></section>`
    : seen.view.type === "bash" ? html`<${Shell} key=${user + topic} user=${user} topic=${topic} view=${seen.view} refresh=${seen.refresh} />`
    : html`<${Pages} key=${user + topic} user=${user} topic=${topic} view=${seen.view} refresh=${seen.refresh} />`}</div>`;
}

/** @param {{ user: string, topic: string, refresh: () => void }} props */
function NotOpen({ user, topic, refresh }) {
  const [failed, setFailed] = useState("");
  const open = () => exec(user, topic, topic.startsWith("bash:") ? "//info" : "/info").then(refresh, (error) => setFailed(error.message));
  return html`<section class="topic-main"><div class="empty"><h1>${shown(topic)} is not open.</h1><p>The first command in a topic opens it. It may have been closed a moment ago.</p>
    <ul><li><button class="button yes" onClick=${open}>Open it</button></li><li><a class="button" href=${to("topics")}>All topics</a></li></ul>${failed && html`<p class="bad" role="alert">${shown(failed)}</p>`}</div></section>`;
}

/** What the page itself asks to show a text is nobody's command. @param {any} event */
const ofPage = (event) => /^Mozilla\//.test(event.client) && ["/source", "/refresh"].includes(event.command);

/** Two clocks of one machine, and the way between them. */
const SLACK_MS = 500;

/** Commands of the topic, others' from the feed and one's own with their replies. @param {string} user @param {string} topic @param {() => void} refresh */
function useCommands(user, topic, refresh) {
  const [own, setOwn] = useState(/** @type {Entry[]} */ ([]));
  const told = events.value;
  const entries = useMemo(() => {
    const unheard = [...own];
    const others = told.filter((each) => each.kind === "topic.done" && each.user === user && each.topic === topic && !ofPage(each)).slice(-30).map(heard).filter((each) => {
      const mine = /^Mozilla\//.test(each.by) ? unheard.findIndex((mine) => each.at >= mine.at - SLACK_MS && mine.command.startsWith(each.command.replace(/(\.\.\.|…)$/, "").trim())) : -1;
      if (mine >= 0) unheard.splice(mine, 1);
      return mine < 0;
    });
    return [...others, ...own].sort((a, b) => a.at - b.at);
  }, [told, own, user, topic]);
  /** @param {string} command */
  const run = async (command) => {
    const id = crypto.randomUUID();
    const began = performance.now();
    /** @param {Partial<Entry>} change */
    const amend = (change) => setOwn((before) => before.map((each) => (each.id === id ? { ...each, ...change } : each)));
    setOwn((before) => [...before, { id, at: Date.now(), command, by: "you", ms: null, reply: null, failed: "" }]);
    try {
      const reply = await exec(user, topic, command);
      amend({ reply, ms: performance.now() - began });
      return reply;
    } catch (error) {
      amend({ failed: error instanceof Error ? error.message : String(error), ms: performance.now() - began });
      throw error;
    } finally {
      refresh();
    }
  };
  return { entries, run };
}

/** @param {any} event @returns {Entry} */
const heard = (event) => ({ id: event.id, at: Date.parse(event.ts) - event.ms, command: event.command, by: event.client, ms: event.ms, reply: null, failed: event.ok ? "" : event.code ?? "failed" });

/** @param {{ user: string, topic: string, view: any, refresh: () => void }} props */
function Pages({ user, topic, view, refresh }) {
  const { entries, run } = useCommands(user, topic, refresh);
  const [line, setLine] = useState("");
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const page = useRef(/** @type {HTMLDivElement | null} */ (null));
  const document_ = view.document;
  const tab = query.value.get("tab") ?? "page";
  /** @param {string} command */
  const send = (command) => void run(command).catch(() => {});
  /** @param {string} target */
  const follow = (target) => send(`/open ${target}`);
  /** @param {string} command */
  const toConsole = (command) => { setLine(command); field.current?.focus(); };
  const keys = useRef({ send, step: (/** @type {number} */ _by) => {} });
  keys.current = { send, step: (by) => step(page.current, by) };
  useEffect(
    () => offer("topic", [
      { key: "`", what: "console", run: () => field.current?.focus() },
      { key: "a", what: "actions", run: () => /** @type {HTMLElement | null} */ (document.querySelector(".action .fold"))?.focus() },
      { key: "e", what: "edit", run: () => setQuery("show", "edit") },
      { key: "b", what: "back", run: () => keys.current.send("/back") },
      { key: "j", what: "next block", run: () => keys.current.step(1) },
      { key: "k", what: "previous block", run: () => keys.current.step(-1) },
    ]),
    [],
  );
  return html`<nav class="tabs" aria-label="Parts of the topic">${[["page", "Page"], ["actions", "Actions"], ["more", "History"]].map(([key, name]) => html`<button aria-pressed=${tab === key} onClick=${() => setQuery("tab", key === "page" ? null : key ?? null)}>${name}</button>`)}</nav>
    <section class=${`topic-main tab-${tab}`} aria-label=${shown(topic)}>
      <${Head} topic=${topic} view=${view} send=${send} />
      <${Menus} document=${document_} follow=${follow} />
      ${query.value.get("show") === "edit" && document_?.uri ? html`<${Editor} key=${document_.uri} user=${user} topic=${topic} uri=${document_.uri} run=${run} />` : html`<div class="scroll sheet-of" ref=${page} tabindex="0" role="region" aria-label="Document"><${Body} view=${view} user=${user} topic=${topic} follow=${follow} setLine=${toConsole} /></div>`}
      <${Console} topic=${topic} view=${view} entries=${entries} send=${send} field=${field} line=${line} setLine=${setLine} />
    </section>
    <aside class=${`topic-side tab-${tab}`} aria-label="What can be done here">
      <${Actions} actions=${document_?.actions ?? []} variables=${new Map(view.variables.map((/** @type {any} */ each) => [each.name, each.value]))} run=${run} toConsole=${toConsole} uri=${document_?.uri ?? ""} />
      <${Variables} view=${view} />
      <${Places} view=${view} follow=${follow} />
    </aside>`;
}

/** Bring the next block into view. @param {HTMLElement | null} page @param {number} by */
function step(page, by) {
  if (!page) return;
  const marks = /** @type {HTMLElement[]} */ ([...page.querySelectorAll(".anchor")]);
  const at = marks.indexOf(/** @type {any} */ (document.activeElement));
  const next = marks[Math.max(0, Math.min(marks.length - 1, at + by))];
  next?.focus();
}

/** @param {{ topic: string, view: any, send: (command: string) => void }} props */
function Head({ topic, view, send }) {
  const shows = query.value.get("show") ?? "page";
  const { document, history, running, queued } = view;
  return html`<header class="sub topic-head"><button class="button plain" disabled=${!history.length} aria-label="Back" title="Back" onClick=${() => send("/back")}>‹</button>
    <h1>${shown(topic)}</h1><code class="cut">${document ? html`${shown(document.shown)}${document.block ? html`<b>#${shown(document.block)}</b>` : ""}` : ""}</code>
    ${running.length > 0 && html`<span class="quiet">working${queued.length ? `, ${queued.length} wait` : ""}</span>`}
    ${document && html`<div class="choice" role="group" aria-label="Show">${[["page", "Page"], ["source", "Source"], ...(document.uri.startsWith("file:") ? [["edit", "Edit"]] : [])].map(([key, name]) => html`<button aria-pressed=${shows === key} onClick=${() => setQuery("show", key === "page" ? null : key ?? null)}>${name}</button>`)}</div>`}</header>`;
}

/** @param {{ document: any, follow: (target: string) => void }} props */
function Menus({ document, follow }) {
  const menus = (document?.menus ?? []).filter((/** @type {any} */ each) => each.entries.length);
  const blocks = (document?.outline ?? []).filter((/** @type {any} */ each) => each.level === 0);
  if (!menus.length && !blocks.length && !document?.block) return null;
  const here = document.uri;
  return html`<nav class="menus" aria-label="Menus">
    ${document.block && html`<span class="group"><button onClick=${() => follow(document.shown)}>Whole page</button></span>`}
    ${menus.map((/** @type {any} */ menu) => html`<span class="group" key=${menu.name}><span class="quiet">${shown(menu.name)}</span>${menu.entries.map((/** @type {any} */ each) => html`<button class=${here.endsWith(each.target) ? "here" : ""} title=${`/open @${shown(each.id)}`} onClick=${() => follow(`@${each.id}`)}>${shown(each.label)}</button>`)}</span>`)}
    ${blocks.length > 0 && html`<span class="group"><span class="quiet">blocks</span>${blocks.map((/** @type {any} */ each) => html`<button class="mono" onClick=${() => follow(`#${each.id}`)}>#${shown(each.id)}</button>`)}</span>`}</nav>`;
}

/** @param {{ view: any, user: string, topic: string, follow: (target: string) => void, setLine: (line: string) => void }} props */
function Body({ view, user, topic, follow, setLine }) {
  const document = view.document;
  if (!document)
    return html`<div class="empty"><h2>No document is open here.</h2><p>A topic shows the document its commands opened.</p><ul><li><button class="button" onClick=${() => setLine("/open ")}>Open one</button></li><li><code>/ls</code> lists the folder</li></ul></div>`;
  if (document.problem) return html`<div class="empty"><h2>The document cannot be shown.</h2><p class="bad">${shown(document.problem)}</p></div>`;
  if (query.value.get("show") === "source") return html`<${Source} user=${user} topic=${topic} of=${document} />`;
  return html`<${DocumentPage} text=${document.markdown} outline=${document.outline} follow=${follow} />
    ${document.cut && html`<p class="quiet pad">The text goes on; Source has all of it.</p>`}
    ${document.warnings.length > 0 && html`<div class="pad quiet"><h3>Warnings</h3>${document.warnings.map((/** @type {string} */ each) => html`<p>${shown(each)}</p>`)}</div>`}`;
}

/** @param {{ user: string, topic: string, of: any }} props */
function Source({ user, topic, of: document }) {
  const [text, setText] = useState("");
  useEffect(() => {
    let current = true;
    exec(user, topic, "/source").then((reply) => current && setText(reply.text), (error) => current && setText(error.message));
    return () => { current = false; };
  }, [user, topic, document.uri, document.markdown]);
  return html`<pre class="source">${shown(text.replace(/^[^\n]*\n---\n/, ""))}</pre>`;
}

/** @param {{ actions: any[], variables: Map<string, string>, run: (command: string) => Promise<any>, toConsole: (line: string) => void, uri: string }} props */
function Actions({ actions, variables, run, toConsole, uri }) {
  return html`<section class="section of-actions"><h2>Actions <span class="quiet">${actions.length ? `${actions.length} on this page` : ""}</span></h2>
    ${actions.length ? actions.map((each) => html`<${ActionForm} key=${uri + each.id} action=${each} variables=${variables} run=${run} toConsole=${toConsole} />`) : html`<p class="quiet pad">This page has none.</p>`}</section>`;
}

/** @param {{ view: any }} props */
export function Variables({ view }) {
  return html`<section class="section of-more"><h2>Variables</h2>
    ${view.variablesProblem && html`<p class="bad pad">${shown(view.variablesProblem)}</p>`}
    ${view.variables.length ? html`<dl class="variables">${view.variables.map((/** @type {any} */ each) => html`<div key=${each.name}><dt class="mono cut">${shown(each.name)}</dt><dd class="mono cut" title=${shown(each.value)}>${shown(each.value)}</dd><dd class="quiet">${each.masked ? "masked" : each.name.startsWith("{") ? "topic" : "kept"}</dd></div>`)}</dl>` : html`<p class="quiet pad">None are set.</p>`}</section>`;
}

/** @param {{ view: any, follow: (target: string) => void }} props */
function Places({ view, follow }) {
  const { document, history } = view;
  return html`<section class="section of-more"><h2>History <span class="quiet">${history.length ? `${history.length} step${history.length === 1 ? "" : "s"} back` : ""}</span></h2>
    <ol class="places">${document && html`<li class="chosen"><span class="mono cut">${shown(document.shown)}${document.block ? `#${shown(document.block)}` : ""}</span><span class="quiet">now</span></li>`}
      ${history.map((/** @type {any} */ each, /** @type {number} */ index) => {
        const target = `${each.shown}${each.block ? `#${each.block}` : ""}`;
        return html`<li key=${index}><button class="mono cut" title=${shown(each.title)} onClick=${() => follow(target)}>${shown(target)}</button></li>`;
      })}</ol>${!document && !history.length && html`<p class="quiet pad">Nothing was opened yet.</p>`}</section>`;
}
