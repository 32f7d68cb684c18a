/** A state by its shape; its word is beside it, or read out. */
import { html } from "../html.js";

const SHAPES = {
  waits: html`<path d="M6 0.5 11.5 6 6 11.5 0.5 6z" fill="currentColor" />`,
  gate: html`<path d="M6 1.2 10.8 6 6 10.8 1.2 6z" stroke="currentColor" stroke-width="1.6" />`,
  working: html`<g class="turns"><circle cx="6" cy="6" r="5" stroke="currentColor" stroke-width="1.5" /><path d="M6 1a5 5 0 0 1 0 10z" fill="currentColor" /></g>`,
  next: html`<circle cx="6" cy="6" r="5" stroke="currentColor" stroke-width="1.4" stroke-dasharray="1.6 2.2" />`,
  idle: html`<circle cx="6" cy="6" r="1.8" fill="currentColor" />`,
  done: html`<path d="M1.5 6.5 4.5 9.5 10.5 2.5" stroke="currentColor" stroke-width="1.7" />`,
  stopped: html`<rect x="1.5" y="1.5" width="9" height="9" fill="currentColor" />`,
  interrupted: html`<path d="M8.5 1.8A5 5 0 1 0 10.9 5" stroke="currentColor" stroke-width="1.5" /><path d="M8.5 1.8h2.6" stroke="currentColor" stroke-width="1.5" />`,
  denied: html`<circle cx="6" cy="6" r="5" stroke="currentColor" stroke-width="1.5" /><path d="M2.6 9.4 9.4 2.6" stroke="currentColor" stroke-width="1.5" />`,
  failed: html`<path fill-rule="evenodd" d="M0.5 0.5h11v11h-11zM3.2 4.1 5.1 6 3.2 7.9 4.1 8.8 6 6.9 7.9 8.8 8.8 7.9 6.9 6 8.8 4.1 7.9 3.2 6 5.1 4.1 3.2z" fill="currentColor" />`,
};

/** @typedef {keyof typeof SHAPES} MarkName */

/** @param {{ of: MarkName, say?: string, past?: boolean }} props `say` is read out when no word is beside it. */
export function Mark({ of, say, past }) {
  const label = say ? { role: "img", "aria-label": say } : { "aria-hidden": "true" };
  return html`<svg class=${`mark ${of}${past ? " past" : ""}`} viewBox="0 0 12 12" ...${label}>${SHAPES[of]}</svg>`;
}

/** What a run's state is called. @param {string} status @param {boolean} waits @returns {[MarkName, string]} */
export function runState(status, waits) {
  if (waits) return ["waits", "waits"];
  switch (status) {
    case "running": return ["working", "working"];
    case "pending": return ["next", "ready"];
    case "completed": return ["done", "done"];
    case "cancelled": return ["stopped", "stopped"];
    case "interrupted": return ["interrupted", "interrupted"];
    default: return ["failed", "failed"];
  }
}
