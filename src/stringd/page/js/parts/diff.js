/** A change as two columns of numbers, a sign and the text. */
import { html } from "../html.js";
import { shown } from "../text.js";

/** @typedef {{ kind: "add" | "del" | "same" | "hunk", old?: number, new?: number, text: string }} Line */

/** Lines of a unified diff; behind a bare `@@` they have no numbers. @param {string} text @returns {Line[]} */
export function readDiff(text) {
  /** @type {Line[]} */
  const lines = [];
  /** @type {[number | undefined, number | undefined]} */
  let [before, after] = [0, 0];
  const next = (/** @type {number | undefined} */ number) => (number === undefined ? undefined : number + 1);
  const all = text.replace(/\n$/, "").split("\n");
  for (const [at, raw] of all.entries()) {
    // The two lines that name the files; a line that was removed may look like one of them.
    if (raw.startsWith("--- ") && all[at + 1]?.startsWith("+++ ")) continue;
    if (raw.startsWith("+++ ") && all[at - 1]?.startsWith("--- ")) {
      if (lines.length) lines.push({ kind: "hunk", text: raw.slice(4) });
      continue;
    }
    const hunk = /^@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@(.*)/.exec(raw);
    if (hunk) {
      [before, after] = [Number(hunk[1]), Number(hunk[2])];
      lines.push({ kind: "hunk", text: `lines ${hunk[2]} on${hunk[3]}` });
    } else if (raw === "@@") {
      if (lines.length) lines.push({ kind: "hunk", text: "and" });
      [before, after] = [undefined, undefined];
    } else if (raw.startsWith("+")) {
      lines.push({ kind: "add", new: after, text: raw.slice(1) });
      after = next(after);
    } else if (raw.startsWith("-")) {
      lines.push({ kind: "del", old: before, text: raw.slice(1) });
      before = next(before);
    } else if (/^[\\…]/.test(raw)) lines.push({ kind: "hunk", text: raw });
    else {
      lines.push({ kind: "same", old: before, new: after, text: raw.slice(1) });
      [before, after] = [next(before), next(after)];
    }
  }
  return lines;
}

const SIGNS = { add: "+", del: "−", same: "", hunk: "" };
const WORDS = { add: "added", del: "removed", same: "", hunk: "" };

/** @param {{ lines: Line[] }} props */
export function Diff({ lines }) {
  return html`<div class="diff" tabindex="0" role="region" aria-label="change"><table><tbody>
    ${lines.map((line) =>
      line.kind === "hunk"
        ? html`<tr class="hunk"><td colspan="4">${shown(line.text)}</td></tr>`
        : html`<tr class=${line.kind}>
            <td class="n">${line.old ?? ""}</td><td class="n">${line.new ?? ""}</td>
            <td class="s">${SIGNS[line.kind]}<span class="only-read">${WORDS[line.kind]}</span></td>
            <td>${shown(line.text)}</td>
          </tr>`,
    )}
  </tbody></table></div>`;
}
