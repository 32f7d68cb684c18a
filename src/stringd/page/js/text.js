/** Text from outside, made safe to read: what cannot be seen is spelled out. */

const UNSEEN =
  // Controls but tab and line feed, direction marks, zero-width characters, lone surrogates.
  /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb]|[\ud800-\udbff](?![\udc00-\udfff])|(?<![\ud800-\udbff])[\udc00-\udfff]/g;

/** @param {unknown} value @returns {string} */
export function shown(value) {
  const text = value == null ? "" : String(value);
  return text.replace(UNSEEN, (found) => `\\u{${found.codePointAt(0)?.toString(16)}}`);
}

/** The first line that says something. @param {unknown} value @returns {string} */
export function firstLine(value) {
  return shown(value).trim().split("\n", 1)[0] ?? "";
}

/** A run's id as people say it. @param {string} id @returns {string} */
export function shortId(id) {
  return /^[0-9a-f]{8}-/.test(id) ? id.slice(0, 6) : shown(id).slice(0, 24);
}
