/** Around every view: where one can go, whether the daemon is there, and how it is. */
import { html, signal } from "../html.js";
import { figures, heard, link, runs, topics } from "../feed.js";
import { wanted } from "../prompts.js";
import { gate } from "../feed.js";
import { path, to } from "../route.js";
import { now, span } from "../time.js";
import { Mark } from "./mark.js";
import { openPalette } from "./palette.js";

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

/** @param {{ href: string, name: string, count?: number, wants?: boolean, wide?: boolean }} props */
function Item({ href, name, count, wants, wide }) {
  const here = `/${path.value[0] ?? ""}`;
  const mine = href.slice(3) || "/";
  const current = here === mine || (mine === "/runs" && here === "/run") || (mine === "/topics" && here === "/topic");
  return html`<li class=${wide ? "wide-only" : ""}><a href=${href} aria-current=${current ? "page" : undefined}>${name}
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
      <${Item} href=${to("health")} name="Health" wide />
    </ul>
    <div class="right">
      <button class="search" onClick=${openPalette}>Search or do <kbd>Ctrl K</kbd></button>
      <span class="live" role="status">${link.value === "live" ? html`<${Mark} of="working" /> <span>live</span>` : html`<${Mark} of="interrupted" /> <span>${link.value === "gone" ? "gone" : "connecting"}</span>`}</span>
      <button class="theme" onClick=${nextTheme} aria-label=${`Colours: ${theme.value}. Change`}>${theme.value[0]?.toUpperCase()}${theme.value.slice(1)}</button>
    </div>
  </nav>`;
}

export function Gone() {
  if (link.value !== "gone") return null;
  return html`<div class="gone" role="alert">The daemon does not answer. What you see is ${span(now.value - heard.value)} old. Trying again; to start it: <code>stringd up</code></div>`;
}

/** @param {{ keys: [string, string][] }} props */
export function Status({ keys }) {
  const last = figures.value.at(-1);
  return html`<footer class="status" aria-label="Daemon">
    <span>${location.host}</span>
    ${last && html`<span>${last.requestsPerSecond} req/s</span><span>queue ${last.queued}</span><span>${Math.round(last.memoryBytes / 1e6)} MB</span><span>shells ${last.shells}</span><span class=${last.errors ? "bad" : ""}>errors ${last.errors}</span>`}
    <span class="keys" aria-hidden="true">${keys.map(([key, what]) => html`<span><b>${key}</b> ${what}</span>`)}</span>
  </footer>`;
}
