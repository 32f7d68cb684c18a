/** A bash topic as a live terminal one can type into. */
import { html, signal, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { exec, parts } from "../exec.js";
import { offer } from "../keys.js";
import { Mark } from "../parts/mark.js";
import { TerminalLine, TerminalText } from "../parts/terminal.js";
import { query, setQuery } from "../route.js";
import { firstLine, shown } from "../text.js";
import { clock, now, took } from "../time.js";
import { useTerminal } from "../topic_watch.js";

const QUIET_MS = 400;
/** Programs that draw, where a command begins. */
const DRAWS = /(?:^|[|;&(]\s*)(?:\w+=\S*\s+)*(?:sudo\s+)?(?:vim?|nvim|view|vimdiff|nano|emacs|less|more|top|htop|btop|tmux|screen|mc|tig|watch|lazygit|nnn|ranger)(?=\s|$)/;

/** @type {import("../../vendor/signals.js").Signal<any>} */
const screenPart = signal(null);

/** @param {{ user: string, topic: string, view: any, refresh: () => void }} props */
export function Shell({ user, topic, view, refresh }) {
  const { terminal, version } = useTerminal(user, topic, refresh);
  const [notice, setNotice] = useState(/** @type {{ text: string, bad: boolean } | null} */ (null));
  const field = useRef(/** @type {HTMLInputElement | null} */ (null));
  const running = terminal.running;
  const busy = Boolean(running) || view.shell.busy;
  const tab = query.value.get("tab") ?? "page";
  /** @param {string} line */
  const send = async (line) => {
    setNotice(null);
    try {
      const reply = await exec(user, topic, line);
      const said = parts(reply.text);
      // What a command printed is in the terminal; what is about the topic is only in the reply.
      if (/^\s*\/\/(?!input|key|kill|screen)/.test(line)) setNotice({ text: said.content || said.message, bad: !reply.ok });
      else if (!reply.ok && !/^EXIT_/.test(reply.code ?? "")) setNotice({ text: reply.text, bad: true });
    } catch (error) {
      setNotice({ text: error instanceof Error ? error.message : String(error), bad: true });
    } finally {
      refresh();
    }
  };
  const pane = useRef(/** @type {HTMLElement | null} */ (null));
  /** @param {string} line @param {boolean} drawn */
  const run = (line, drawn) => {
    if (line.startsWith("//") || !(drawn || DRAWS.test(line))) return send(line);
    const room = pane.current?.querySelector(".terminal");
    const [columns, rows] = [Math.floor(((room?.clientWidth ?? 760) - 32) / 7.9), Math.floor((room?.clientHeight ?? 480) / 16)];
    return send(`//screen ${Math.max(20, columns)}x${Math.max(5, rows)} ${line}`);
  };
  const draws = Boolean(running?.screen);
  useEffect(() => {
    if (draws && !screenPart.value) import("../parts/screen.js").then((found) => (screenPart.value = found.Screen));
  }, [draws]);
  useEffect(() => offer("terminal", [{ key: "i", what: "type into the terminal", run: () => field.current?.focus() }, { key: "`", what: "type into the terminal", run: () => field.current?.focus(), shown: false }]), []);
  const home = (/** @type {string} */ place) => shorter(place, view);
  const history = terminal.commands.filter((each) => each.number > 0).map((each) => each.text);
  return html`<nav class="tabs" aria-label="Parts of the topic">${[["page", "Terminal"], ["more", "Commands"]].map(([key, name]) => html`<button aria-pressed=${tab === key} onClick=${() => setQuery("tab", key === "page" ? null : key ?? null)}>${name}</button>`)}</nav>
    <section class=${`topic-main tab-${tab}`} ref=${pane} aria-label=${shown(topic)}>
      <${Head} topic=${topic} view=${view} running=${running} busy=${busy} send=${send} home=${home} />
      ${draws && screenPart.value
        ? html`<${screenPart.value} user=${user} topic=${topic} command=${running} version=${version} leave=${() => field.current?.focus()} />`
        : html`<${TerminalText} terminal=${terminal} version=${version} home=${home} />`}
      ${notice && html`<div class="notice" role=${notice.bad ? "alert" : "status"}><pre class=${notice.bad ? "bad" : ""}>${shown(notice.text)}</pre><button class="button plain" onClick=${() => setNotice(null)}>Close</button></div>`}
      <${TerminalLine} busy=${busy} command=${running?.text ?? view.shell.command} place=${home(view.shell.directory)} send=${send} run=${run} field=${field} history=${history} />
    </section>
    <aside class=${`topic-side tab-${tab}`} aria-label="The shell"><${Commands} terminal=${terminal} version=${version} /><${Waiting} view=${view} /><${About} view=${view} home=${home} /></aside>`;
}

/** @param {string} place @param {any} view */
function shorter(place, view) {
  const home = view.home ?? "";
  return home && (place === home || place.startsWith(`${home}/`)) ? `~${place.slice(home.length)}` : place;
}

/** @param {{ topic: string, view: any, running: any, busy: boolean, send: (line: string) => void, home: (place: string) => string }} props */
function Head({ topic, view, running, busy, send, home }) {
  const [asking, setAsking] = useState(/** @type {"" | "interrupt" | "kill"} */ (""));
  const harmless = useRef(/** @type {HTMLButtonElement | null} */ (null));
  const asked = useRef(0);
  useLayoutEffect(() => {
    asked.current = performance.now();
    harmless.current?.focus();
  }, [asking]);
  // The palette leads here with the question; it is asked once, not again after a reload.
  const wish = query.value.get("ask");
  useEffect(() => {
    if (!busy) return setAsking("");
    if (wish !== "kill") return undefined;
    setAsking("kill");
    return setQuery("ask", null);
  }, [busy, wish]);
  const looked = useRef({ view, at: now.value });
  if (looked.current.view !== view) looked.current = { view, at: Date.now() };
  const left = view.shell.secondsLeft === null ? null : Math.max(0, Math.round(view.shell.secondsLeft - (now.value - looked.current.at) / 1000));
  const waits = busy && view.shell.waitsForInput;
  /** @param {string} line */
  const go = (line) => {
    // The second half of a double click is not an answer.
    if (performance.now() - asked.current < QUIET_MS) return;
    setAsking("");
    send(line);
  };
  return html`<header class="sub topic-head"><h1>${shown(topic)}</h1>
    <${Mark} of=${busy ? "working" : "idle"} /><span>${busy ? html`working ${running ? clock(now.value - running.at) : ""}${waits ? ", waits for input" : ""}` : view.shell.alive ? "idle" : "no shell yet"}</span>
    <code class="cut quiet">${shown(home(view.shell.directory))}</code>
    ${busy && html`<span class="end">${
      asking === "kill" ? html`<span>Kill it?</span><button class="button" ref=${harmless} onClick=${() => setAsking("")}>Let it run</button><button class="button stop" onClick=${() => go("//kill")}>Kill</button>`
      : asking === "interrupt" ? html`<span>Interrupt it?</span><button class="button" ref=${harmless} onClick=${() => setAsking("")}>Let it run</button><button class="button stop" onClick=${() => go("//key ctrl-c")}>Ctrl-C</button>`
      : html`${left !== null && html`<span class="quiet limit">${left} s left</span>`}<button class="button" onClick=${() => setAsking("interrupt")}>Ctrl-C</button><button class="button stop" onClick=${() => setAsking("kill")}>Kill</button>`}</span>`}</header>`;
}

/** @param {import("../terminal.js").Command} command @returns {["working" | "done" | "failed" | "stopped", string]} */
function ended(command) {
  if (command.status === null) return ["working", clock(now.value - command.at)];
  if (command.status === 130 || command.status === 137 || command.status === 143) return ["stopped", command.status === 130 ? "interrupted" : "killed"];
  return command.status ? ["failed", `exit ${command.status}`] : ["done", took(command.ms)];
}

/** @param {{ terminal: import("../terminal.js").Terminal, version: number }} props */
function Commands({ terminal }) {
  const mine = terminal.commands.filter((each) => each.number > 0).reverse();
  return html`<section class="section of-more"><h2>Commands <span class="quiet">${mine.length || ""}</span></h2>
    ${mine.length ? html`<ol class="places">${mine.slice(0, 50).map((each) => {
      const [mark, word] = ended(each);
      return html`<li key=${each.number} class=${mark === "working" ? "chosen" : ""}><${Mark} of=${mark} /><button class="mono cut" onClick=${() => document.getElementById(`ran-${each.number}`)?.scrollIntoView({ block: "center" })}>${firstLine(each.text)}</button><span class=${mark === "failed" ? "bad" : "quiet"}>${word}</span></li>`;
    })}</ol>` : html`<p class="quiet pad">None yet.</p>`}</section>`;
}

/** @param {{ view: any }} props */
function Waiting({ view }) {
  if (!view.queued.length) return null;
  return html`<section class="section of-more"><h2>Waiting behind it <span class="quiet">${view.queued.length}</span></h2><ol class="places">${view.queued.map((/** @type {string} */ each) => html`<li><${Mark} of="next" /><span class="mono cut">${shown(each)}</span></li>`)}</ol></section>`;
}

/** @param {{ view: any, home: (place: string) => string }} props */
function About({ view, home }) {
  const shell = view.shell;
  const rows = [
    ["pid", shell.alive ? String(shell.pid) : "none; the next command starts one"],
    ["directory", home(shell.directory)],
    ...(shell.level && shell.level !== "open" ? [["sandbox", shell.level]] : []),
    ...view.variables.filter((/** @type {any} */ each) => each.name.startsWith("{")).map((/** @type {any} */ each) => [each.name, each.value]),
  ];
  return html`<section class="section of-more"><h2>Shell</h2><dl class="about">${rows.map(([name, value]) => html`<dt class="quiet cut">${shown(name)}</dt><dd class=${name === "pid" ? "" : "mono"}>${shown(value)}</dd>`)}</dl></section>`;
}
