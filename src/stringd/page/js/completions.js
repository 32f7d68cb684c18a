/** What a line of the console can go on with. Pure. */

/** @typedef {{ shown: string, line: string }} Completion */

const MOST = 12;
const NAVIGATES = /^(\/(?:open|info|edit|verify|source|replace)\s+)(\S*)$/;

/**
 * @param {string} line @param {any} view of the topic @returns {Completion[]}
 */
export function completions(line, view) {
  if (!view || !line.startsWith("/")) return [];
  if (view.type === "bash") return line.startsWith("//") ? commands(line, view) : [];
  const document = view.document;
  const asked = NAVIGATES.exec(line);
  if (asked) return targets(asked[1] ?? "", asked[2] ?? "", view);
  const act = /^\/act\.([\w-]+)\s+(?:.*\s)?(--?[\w-]*)$/.exec(line);
  if (act) {
    const action = document?.actions.find((/** @type {any} */ each) => each.id === act[1]);
    const typed = act[2] ?? "";
    return starting(action?.fields.map((/** @type {any} */ each) => `--${each.name}`) ?? [], typed, line.slice(0, line.length - typed.length));
  }
  return commands(line, view);
}

/** @param {string} line @param {any} view */
function commands(line, view) {
  const own = (view.document?.actions ?? []).map((/** @type {any} */ each) => `/act.${each.id}`);
  const words = view.commands.map((/** @type {any} */ each) => each.form.split(/[\s<[]/, 1)[0]).filter((/** @type {string} */ each) => each.startsWith("/") && !/[.:]$/.test(each));
  return starting([...new Set([...words, ...own])], line, "");
}

/** @param {string} before @param {string} typed @param {any} view */
function targets(before, typed, view) {
  const hash = typed.indexOf("#");
  const document = view.document;
  if (!document) return [];
  if (hash >= 0) return starting(document.outline.map((/** @type {any} */ each) => `#${each.id}`), typed.slice(hash), before + typed.slice(0, hash));
  const places = [document.shown, ...view.history.map((/** @type {any} */ each) => each.shown)];
  return starting([...document.shortcuts.map((/** @type {string} */ each) => `@${each}`), ...new Set(places)], typed, before);
}

/** @param {string[]} words @param {string} typed @param {string} before @returns {Completion[]} */
function starting(words, typed, before) {
  return words.filter((each) => each.startsWith(typed) && each !== typed).slice(0, MOST).map((each) => ({ shown: each, line: before + each }));
}
