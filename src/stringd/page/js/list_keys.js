/** Keys of a list: move the current row, open it. */

/**
 * @template T
 * @param {import("../vendor/signals.js").Signal<string>} current the key of the current row
 * @param {() => T[]} rows @param {(row: T) => string} keyOf @param {(row: T) => void} open
 * @returns {import("./keys.js").Key[]}
 */
export function listKeys(current, rows, keyOf, open) {
  const move = (/** @type {number} */ by) => {
    const all = rows();
    const at = all.findIndex((row) => keyOf(row) === current.value);
    const next = all[Math.max(0, Math.min(all.length - 1, at + by))];
    if (!next) return;
    current.value = keyOf(next);
    document.getElementById(rowId(current.value))?.scrollIntoView({ block: "nearest" });
  };
  const chosen = () => rows().find((row) => keyOf(row) === current.value);
  return [
    { key: "j", what: "down", run: () => move(1) },
    { key: "k", what: "up", run: () => move(-1) },
    { key: "ArrowDown", what: "down", run: () => move(1), shown: false },
    { key: "ArrowUp", what: "up", run: () => move(-1), shown: false },
    { key: "Enter", what: "open", run: () => { const row = chosen(); if (row) open(row); } },
  ];
}

/** The id of a row's element. @param {string} key */
export const rowId = (key) => `row-${encodeURIComponent(key)}`;
