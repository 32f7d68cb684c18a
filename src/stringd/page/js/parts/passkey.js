/** The way to the gate's own page, where a passkey approves a question. This page cannot: only the gate checks. */
import { html } from "../html.js";

const GATES_PAGE = /^http:\/\/localhost:\d{1,5}\/$/;

/** @param {{ at: string | undefined }} props */
export function PasskeyLink({ at }) {
  if (!at || !GATES_PAGE.test(at)) return null;
  return html`<a class="button" href=${at} target="_blank" rel="noopener noreferrer">Approve with passkey</a>`;
}
