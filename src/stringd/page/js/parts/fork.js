/** Begin a new run after a step another has completed. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { resume } from "../prompts.js";
import { go, to } from "../route.js";
import { ask } from "../runs_socket.js";
import { shown } from "../text.js";

/** @typedef {{ path: string, name: string, completedAt: string }} CompletedStep */

/** A step as people tell it apart: rounds of a cycle have the same names. @param {CompletedStep} step */
const called = (step) => {
  const round = /^c(\d+)\./.exec(step.path)?.[1];
  return `${shown(step.name)}${round ? `, round ${round}` : ""}`;
};

/** @param {{ runId: string, close: () => void }} props */
export function ForkPicker({ runId, close }) {
  const [steps, setSteps] = useState(/** @type {CompletedStep[] | null} */ (null));
  const [at, setAt] = useState("");
  const [failed, setFailed] = useState("");
  const field = useRef(/** @type {HTMLSelectElement | null} */ (null));
  useEffect(() => {
    ask({ type: "get_timeline", runId }).then(({ steps: found }) => {
      setSteps(found);
      setAt(found.at(-1)?.path ?? "");
    }).catch((error) => setFailed(error.message));
  }, [runId]);
  useLayoutEffect(() => field.current?.focus(), [steps]);
  /** @param {Event} event */
  const fork = async (event) => {
    event.preventDefault();
    try {
      const { runId: made } = await ask({ type: "fork_run", runId, at });
      await resume(made ?? "");
      go(to("run", made ?? ""));
      close();
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    }
  };
  return html`<form class="fork" aria-label="Fork" onSubmit=${fork} onKeyDown=${(/** @type {KeyboardEvent} */ e) => { if (e.key === "Escape") { e.stopPropagation(); close(); } }}>
    ${steps?.length
      ? html`<label>A new run that begins after <select class="field" ref=${field} value=${at} onChange=${(/** @type {any} */ e) => setAt(e.target.value)}>${steps.map((step) => html`<option key=${step.path} value=${step.path}>${called(step)}</option>`)}</select></label>
        <button class="button yes">Fork</button>`
      : steps && html`<span>No step is complete yet. A fork begins after one that is.</span>`}
    <button class="button" type="button" onClick=${close}>Cancel</button>
    ${steps?.length ? html`<p class="quiet">Nothing up to there is done again. Files stay as they are now.</p>` : ""}
    ${failed && html`<p class="bad" role="alert">${shown(failed)}</p>`}</form>`;
}
