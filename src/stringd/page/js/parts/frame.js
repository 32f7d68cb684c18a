/** Around every view: where one can go, whether the daemon is there, and how it is. */
import { html, signal, useEffect } from "../html.js";
import { figures, follow, heard, link, nextTry, runs, topics } from "../feed.js";
import { offer } from "../keys.js";
import { wanted } from "../prompts.js";
import { gate } from "../feed.js";
import { path, to } from "../route.js";
import { now, span } from "../time.js";
import { Mark } from "./mark.js";
import { Glass, openPalette } from "./palette.js";

const THEMES = ["auto", "light", "dark"];
const theme = signal(localStorage.getItem("theme") ?? "auto");
applyTheme();

function applyTheme() {
  if (theme.value === "auto") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = theme.value;
}

export function nextTheme() {
  theme.value = THEMES[(THEMES.indexOf(theme.value) + 1) % THEMES.length] ?? "auto";
  localStorage.setItem("theme", theme.value);
  applyTheme();
}

/** @param {{ href: string, name: string, count?: number, wants?: boolean }} props */
function Item({ href, name, count, wants }) {
  const here = `/${path.value[0] ?? ""}`;
  const mine = href.slice(3) || "/";
  const current = here === mine || (mine === "/runs" && here === "/run") || (mine === "/topics" && here === "/topic");
  return html`<li><a href=${href} aria-current=${current ? "page" : undefined}>${name}
    ${count ? html`<span class=${`count${wants ? " wants" : ""}`}>${count}</span>` : null}</a></li>`;
}

export function Navigation() {
  const live = [...runs.value.values()].filter((each) => each.status === "running").length;
  return html`<nav class="nav" aria-label="Views">
    <a class="brand" href=${to("")} aria-label="stringd, inbox"><svg viewBox="0 0 16 24" aria-hidden="true"><path d="M8 2v5M8 17v5M8 7l4 5-4 5-4-5z" fill="none" stroke="currentColor" stroke-width="1.5" /></svg><span>stringd</span></a>
    <ul>
      <${Item} href=${to("")} name="Inbox" count=${wanted.value} wants />
      <${Item} href=${to("runs")} name="Runs" count=${live} />
      <${Item} href=${to("topics")} name="Topics" count=${topics.value.size} />
      <${Item} href=${to("events")} name="Events" />
      <${Item} href=${to("gate")} name="Gate" count=${gate.value.size} wants />
      <${Item} href=${to("health")} name="Health" />
    </ul>
    <div class="right">
      <button class="search" onClick=${openPalette}><${Glass} /><span>Search or do</span> <kbd>Ctrl K</kbd></button>
      <span class="live" role="status">${link.value === "live" ? html`<${Mark} of="working" /> <span>live</span>` : html`<${Mark} of=${link.value === "gone" ? "failed" : "interrupted"} /> <span>${link.value === "gone" ? "disconnected" : "connecting"}</span>`}</span>
      <button class="theme" onClick=${nextTheme} aria-label=${`Colours: ${theme.value}. Change`}>${theme.value[0]?.toUpperCase()}${theme.value.slice(1)}</button>
    </div>
  </nav>`;
}

export function Gone() {
  const gone = link.value === "gone";
  useEffect(() => (gone ? offer("gone", [{ key: "r", what: "try now", run: () => void follow() }]) : undefined), [gone]);
  if (!gone) return null;
  const left = Math.max(0, Math.ceil((nextTry.value - now.value) / 1000));
  return html`<div class="gone" role="alert"><${Mark} of="failed" /><span><b>The daemon does not answer.</b> What you see is from ${new Date(heard.value).toLocaleTimeString()}. What you typed is kept.</span>
    <span class="end"><span aria-live="off">${left ? `next try in ${left} s` : "trying"}</span><button class="button" onClick=${() => void follow()}>Try now</button><code>stringd up</code></span></div>`;
}

/** @param {{ keys: [string, string][] }} props */
export function Status({ keys }) {
  const last = figures.value.at(-1);
  return html`<footer class="status" aria-label="Daemon">
    <span>${location.host}</span>
    ${link.value === "gone" ? html`<span class="bad">no answer for ${span(now.value - heard.value)}</span>` : last && html`<span>${last.requestsPerSecond} req/s</span><${Sparks} of=${figures.value.slice(-12).map((each) => each.requestsPerSecond)} /><span>queue ${last.queued}</span><span>${Math.round(last.memoryBytes / 1e6)} MB</span><span>shells ${last.shells}</span><span class=${last.errors ? "bad" : ""}>errors ${last.errors}</span>`}
    <span class="keys" aria-hidden="true">${keys.map(([key, what]) => html`<span><b>${key}</b> ${what}</span>`)}</span>
  </footer>`;
}

/** @param {{ of: number[] }} props */
function Sparks({ of: series }) {
  const most = Math.max(1, ...series);
  return html`<svg class="sparks" width="48" height="12" aria-hidden="true">${series.map((value, at) => {
    const height = Math.max(1, (value / most) * 12);
    return html`<rect x=${(12 - series.length + at) * 4} y=${12 - height} width="3" height=${height} />`;
  })}</svg>`;
}
