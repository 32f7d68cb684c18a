/** An action of a page as a form made from its fields. */
import { html, useState } from "../html.js";
import { actionCommand, initial, isSwitch } from "../arguments.js";
import { parts } from "../exec.js";
import { Markdown } from "../markdown.js";
import { shown } from "../text.js";

const FEW = 3;

/** @typedef {import("../exec.js").Reply} Reply */

/** @param {{ action: any, variables: Map<string, string>, run: (command: string) => Promise<Reply>, toConsole: (line: string) => void }} props */
export function ActionForm({ action, variables, run, toConsole }) {
  const [open, setOpen] = useState(false);
  const [typed, setTyped] = useState(/** @type {Record<string, string>} */ ({}));
  const [reply, setReply] = useState(/** @type {Reply | null} */ (null));
  const [failed, setFailed] = useState("");
  const [running, setRunning] = useState(false);
  /** @type {Record<string, string>} */
  const values = {};
  for (const field of action.fields) values[field.name] = typed[field.name] ?? initial(field, variables);
  const missing = action.fields.filter((/** @type {any} */ each) => each.required && !values[each.name]);
  const command = actionCommand(action.id, action.fields, values);
  /** @param {Event} event */
  const submit = async (event) => {
    event.preventDefault();
    if (running || missing.length) return;
    setRunning(true);
    setFailed("");
    try {
      setReply(await run(command));
    } catch (error) {
      setFailed(error instanceof Error ? error.message : String(error));
    } finally {
      setRunning(false);
    }
  };
  const said = reply && parts(reply.text);
  return html`<div class="action">
    <button class="fold" aria-expanded=${open} onClick=${() => setOpen(!open)}><svg class="turn" viewBox="0 0 8 8" aria-hidden="true"><path d="M2 1l4 3-4 3" fill="none" stroke="currentColor" stroke-width="1.3" /></svg>
      <b class="mono">${shown(action.id)}</b> <span class="quiet cut">${open ? "" : action.fields.map((/** @type {any} */ each) => shown(each.name)).join(", ")}</span><span class="end quiet">${shown(action.method)}</span></button>
    ${open && html`<form onSubmit=${submit}>
      ${action.fields.map((/** @type {any} */ field) => html`<${Field} key=${field.name} of=${field} id=${`${action.id}-${field.name}`} value=${values[field.name]} meant=${variables.get(values[field.name] ?? "")} set=${(/** @type {string} */ value) => setTyped({ ...typed, [field.name]: value })} />`)}
      <p class="act"><button class="button" disabled=${running || missing.length > 0}>${running ? "Running" : html`Run ${shown(action.id)}`}</button>
        <button type="button" class="button plain" onClick=${() => toConsole(command)}>As command</button></p>
      ${missing.length > 0 && html`<p class="quiet">Needs ${missing.map((/** @type {any} */ each) => shown(each.name)).join(", ")}.</p>`}
      ${failed && html`<p class="bad" role="alert">${shown(failed)}</p>`}
      ${reply && said && html`<div class="output answer" role="status" tabindex="0">${reply.ok ? html`<${Markdown} text=${said.content || said.message || "Done."} />` : html`<p class="bad">${shown(reply.text)}</p>`}</div>`}
    </form>`}
  </div>`;
}

/** @param {{ of: any, id: string, value: string, meant?: string, set: (value: string) => void }} props `meant`: what a variable's name stands for. */
function Field({ of: field, id, value, meant, set }) {
  const name = html`<label for=${id}>${shown(field.name)}</label>`;
  const input = (/** @type {any} */ event) => set(event.target.value);
  const note = meant !== undefined ? html`<p class="quiet note">${shown(meant)} from this topic</p>` : field.description && html`<p class="quiet note">${shown(field.description)}</p>`;
  if (field.choices.length > 0 && field.choices.length <= FEW)
    return html`<div class="input"><span id=${id}>${shown(field.name)}</span><div class="choice" role="group" aria-labelledby=${id}>${field.choices.map((/** @type {string} */ each) => html`<button type="button" aria-pressed=${value === each} onClick=${() => set(each)}>${shown(each)}</button>`)}</div>${note}</div>`;
  if (field.choices.length)
    return html`<div class="input">${name}<select class="field" id=${id} value=${value} onChange=${input}>${!field.choices.includes(value) && html`<option value=""></option>`}${field.choices.map((/** @type {string} */ each) => html`<option value=${each}>${shown(each)}</option>`)}</select>${note}</div>`;
  if (isSwitch(field))
    return html`<div class="input">${name}<input class="check" type="checkbox" id=${id} checked=${value === "true"} onChange=${(/** @type {any} */ e) => set(String(e.target.checked))} />${note}</div>`;
  const number = ["number", "integer", "int", "float"].includes(field.type);
  const range = number ? { min: field.minimum ?? undefined, max: field.maximum ?? undefined, step: /^int/.test(field.type) ? 1 : "any" } : {};
  return html`<div class="input">${name}<input class="field mono" id=${id} type=${number ? "number" : "text"} ...${range} value=${value} placeholder=${field.required ? "" : "optional"} autocomplete="off" spellcheck=${false} onInput=${input} />${note}</div>`;
}
