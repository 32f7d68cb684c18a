/** Times as people say them, kept current by one clock for the whole page. */
import { computed, html, signal, useMemo } from "./html.js";

/** Milliseconds now; ticks once a second while anything is shown by it. */
export const now = signal(Date.now());
setInterval(() => {
  if (document.visibilityState === "visible") now.value = Date.now();
}, 1000);
document.addEventListener("visibilitychange", () => (now.value = Date.now()));

/** @param {number} milliseconds @returns {string} */
export function span(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  if (seconds < 60) return `${seconds} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 10) return `${minutes} min ${seconds % 60} s`;
  if (minutes < 60) return `${minutes} min`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours} h ${minutes % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** A running time as a clock shows it: 9:38 or 1:48:02. @param {number} milliseconds */
export function clock(milliseconds) {
  const seconds = Math.max(0, Math.floor(milliseconds / 1000));
  const [h, m, s] = [Math.floor(seconds / 3600), Math.floor(seconds / 60) % 60, seconds % 60];
  const two = (/** @type {number} */ n) => String(n).padStart(2, "0");
  return h ? `${h}:${two(m)}:${two(s)}` : `${m}:${two(s)}`;
}

/** How long a thing took. @param {number} ms */
export function took(ms) {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  return ms < 60_000 ? `${(ms / 1000).toFixed(1)} s` : span(ms);
}

/** How long ago something was, with the exact time at hand. @param {{ at: string }} props */
export function Age({ at }) {
  const then = Date.parse(at);
  // Drawn again when its words change, not with every second.
  const words = useMemo(() => computed(() => span(now.value - then)), [then]);
  if (Number.isNaN(then)) return null;
  return html`<time datetime=${at} title=${new Date(then).toLocaleString()}>${words.value}</time>`;
}
