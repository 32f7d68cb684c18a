/** Two texts as the lines that were removed, added and kept. Pure. */

/** @typedef {import("./parts/diff.js").Line} Line */

const AROUND = 3;
/** Beyond that many pairs of lines a change is shown as one removed and one added piece. */
const MOST_PAIRS = 4_000_000;

/** @param {string} text */
const linesOf = (text) => (text === "" ? [] : text.replace(/\n$/, "").split("\n"));

/** What changed, with a little around it. @param {string} before @param {string} after @returns {Line[]} */
export function diffLines(before, after) {
  const [old, now] = [linesOf(before), linesOf(after)];
  let head = 0;
  while (head < old.length && head < now.length && old[head] === now[head]) head += 1;
  let tail = 0;
  while (tail < old.length - head && tail < now.length - head && old[old.length - 1 - tail] === now[now.length - 1 - tail]) tail += 1;
  const [removed, added] = [old.slice(head, old.length - tail), now.slice(head, now.length - tail)];
  const kept = removed.length * added.length <= MOST_PAIRS ? common(removed, added) : [];
  /** @type {Line[]} */
  const lines = old.slice(0, head).map((text, at) => ({ kind: /** @type {const} */ ("same"), old: at + 1, new: at + 1, text }));
  let [i, j] = [0, 0];
  for (const [x, y] of [...kept, [removed.length, added.length]]) {
    for (; i < (x ?? 0); i += 1) lines.push({ kind: "del", old: head + i + 1, text: removed[i] ?? "" });
    for (; j < (y ?? 0); j += 1) lines.push({ kind: "add", new: head + j + 1, text: added[j] ?? "" });
    if (i < removed.length && j < added.length) {
      lines.push({ kind: "same", old: head + i + 1, new: head + j + 1, text: removed[i] ?? "" });
      i += 1;
      j += 1;
    }
  }
  for (let at = tail; at > 0; at -= 1) lines.push({ kind: "same", old: old.length - at + 1, new: now.length - at + 1, text: old[old.length - at] ?? "" });
  return folded(lines);
}

/** The longest lines in common, as pairs of places. @param {string[]} old @param {string[]} now @returns {[number, number][]} */
function common(old, now) {
  const width = now.length + 1;
  const longest = new Uint32Array((old.length + 1) * width);
  for (let i = old.length - 1; i >= 0; i -= 1)
    for (let j = now.length - 1; j >= 0; j -= 1)
      longest[i * width + j] = old[i] === now[j] ? (longest[(i + 1) * width + j + 1] ?? 0) + 1 : Math.max(longest[(i + 1) * width + j] ?? 0, longest[i * width + j + 1] ?? 0);
  /** @type {[number, number][]} */
  const pairs = [];
  for (let [i, j] = [0, 0]; i < old.length && j < now.length; ) {
    if (old[i] === now[j]) pairs.push([i++, j++]);
    else if ((longest[(i + 1) * width + j] ?? 0) >= (longest[i * width + j + 1] ?? 0)) i += 1;
    else j += 1;
  }
  return pairs;
}

/** Long stretches that did not change become one line that says so. @param {Line[]} lines @returns {Line[]} */
function folded(lines) {
  const near = new Set();
  lines.forEach((line, at) => {
    if (line.kind !== "same") for (let each = at - AROUND; each <= at + AROUND; each += 1) near.add(each);
  });
  /** @type {Line[]} */
  const shown = [];
  let hidden = 0;
  lines.forEach((line, at) => {
    if (near.has(at)) {
      if (hidden) shown.push({ kind: "hunk", text: `${hidden} line${hidden === 1 ? "" : "s"} the same` });
      hidden = 0;
      shown.push(line);
    } else hidden += 1;
  });
  if (hidden && shown.length) shown.push({ kind: "hunk", text: `${hidden} line${hidden === 1 ? "" : "s"} the same` });
  return shown;
}
