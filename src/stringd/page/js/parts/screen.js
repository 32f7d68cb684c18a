/** A screen for a program that draws: editors, pagers, monitors. Loaded when one runs. */
import { html, useEffect, useRef } from "../html.js";
import { topicAddress } from "../topic_watch.js";
import { Terminal as Xterm } from "../../vendor/xterm.js";

/** @typedef {import("../terminal.js").Command} Command */

const SETTLED_MS = 150;
const STYLES = "/ui/static/vendor/xterm.css";

/**
 * Open it. The style elements it makes meanwhile count only with the word the daemon gave this page.
 * @param {Xterm} screen @param {HTMLElement} place
 */
function open(screen, place) {
  const nonce = document.querySelector('meta[name="style-nonce"]')?.getAttribute("content") ?? "";
  const make = document.createElement.bind(document);
  document.createElement = (/** @type {string} */ tag, /** @type {any} */ options) => {
    const made = make(tag, options);
    if (tag === "style") made.nonce = nonce;
    return /** @type {any} */ (made);
  };
  try {
    screen.open(place);
  } finally {
    Reflect.deleteProperty(document, "createElement");
  }
}

/** The page's colours, for a program that names sixteen. */
function theme() {
  const shown = getComputedStyle(document.body);
  const probe = document.body.appendChild(document.createElement("span"));
  /** @param {string} name */
  const colour = (name) => {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  };
  const [ink, second, third, bad, good, you, paper] = ["ink", "ink-2", "ink-3", "bad", "good", "you", "paper"].map(colour);
  const chosen = colour("paper-3");
  probe.remove();
  const named = { black: ink, red: bad, green: good, yellow: second, blue: second, magenta: second, cyan: second, white: third };
  const bright = Object.fromEntries(Object.entries(named).map(([name, value]) => [`bright${name[0]?.toUpperCase()}${name.slice(1)}`, value]));
  return /** @type {import("../../vendor/xterm.js").Theme} */ ({ ...named, ...bright, brightBlack: third, white: second, foreground: ink, background: paper ?? shown.backgroundColor, cursor: you, cursorAccent: paper, selectionBackground: chosen });
}

/**
 * Keys in the order they were pressed, as many in one request as came meanwhile.
 * @param {string} user @param {string} topic
 */
function typist(user, topic) {
  /** @type {{ text: string, columns?: number, rows?: number }} */
  let waiting = { text: "" };
  let sending = false;
  const send = async () => {
    if (sending) return;
    sending = true;
    while (waiting.text || waiting.columns) {
      const taken = waiting;
      waiting = { text: "" };
      // A program that ended meanwhile takes no keys: the feed says so.
      await fetch(`${topicAddress(user, topic)}/input`, { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(taken) }).catch(() => {});
    }
    sending = false;
  };
  return {
    /** @param {string} text */
    type(text) { waiting.text += text; send(); },
    /** @param {number} columns @param {number} rows */
    resize(columns, rows) { Object.assign(waiting, { columns, rows }); send(); },
  };
}

/** How many characters fit. @param {HTMLElement} place @param {Xterm} screen */
function fitting(place, screen) {
  const drawn = place.querySelector(".xterm-screen");
  if (!(drawn instanceof HTMLElement) || !drawn.offsetWidth) return null;
  const [width, height] = [drawn.offsetWidth / screen.cols, drawn.offsetHeight / screen.rows];
  return { columns: Math.max(20, Math.floor((place.clientWidth - 32) / width)), rows: Math.max(5, Math.floor((place.clientHeight - 8) / height)) };
}

/** @param {{ user: string, topic: string, command: Command, version: number, leave: () => void }} props */
export function Screen({ user, topic, command, leave }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  const screen = useRef(/** @type {Xterm | null} */ (null));
  const drawn = useRef(0);
  useEffect(() => {
    const box = place.current;
    if (!box) return;
    if (!document.querySelector(`link[href="${STYLES}"]`)) {
      const link = document.createElement("link");
      Object.assign(link, { rel: "stylesheet", href: STYLES });
      document.head.append(link);
    }
    const [columns, rows] = command.screen ?? [80, 24];
    const fonts = getComputedStyle(document.documentElement).getPropertyValue("--mono") || "monospace";
    const made = new Xterm({ cols: columns, rows, scrollback: 0, fontSize: 13, fontFamily: fonts, theme: theme(), linkHandler: { activate() {} }, cursorBlink: false });
    const keys = typist(user, topic);
    made.onData((text) => keys.type(text));
    made.attachCustomKeyEventHandler((event) => {
      if (!(event.ctrlKey && event.key === "]")) return true;
      made.blur();
      if (event.type === "keydown") leave();
      return false;
    });
    open(made, box);
    made.focus();
    screen.current = made;
    drawn.current = command.forgotten;
    let timer = 0;
    // The size asked for last counts as well: its answer may still be under way.
    let asked = { columns, rows };
    const fit = () => {
      const wanted = fitting(box, made);
      const fits = [asked, { columns: made.cols, rows: made.rows }].every((size) => size.columns === wanted?.columns && size.rows === wanted?.rows);
      if (!wanted || fits) return;
      asked = wanted;
      keys.resize(wanted.columns, wanted.rows);
    };
    const watcher = new ResizeObserver(() => { clearTimeout(timer); timer = setTimeout(fit, SETTLED_MS); });
    watcher.observe(box);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const recolour = () => (made.options.theme = theme());
    dark.addEventListener("change", recolour);
    return () => { clearTimeout(timer); watcher.disconnect(); dark.removeEventListener("change", recolour); made.dispose(); screen.current = null; };
  }, [user, topic, command.number]);
  useEffect(() => {
    const made = screen.current;
    if (!made) return;
    if (drawn.current < command.forgotten) { made.reset(); drawn.current = command.forgotten; }
    for (; drawn.current < command.forgotten + command.drawn.length; drawn.current += 1) {
      const piece = command.drawn[drawn.current - command.forgotten];
      if (typeof piece === "string") made.write(piece);
      else if (piece) made.resize(piece[0], piece[1]);
    }
  });
  return html`<div class="screen" ref=${place} aria-label="Screen" role="group"></div>`;
}
