/** Markdown from documents and models, through the one door: parsed, sanitised, foreign images left out. */
import { html, useLayoutEffect, useRef } from "./html.js";
import DOMPurify from "../vendor/purify.js";
import { Marked } from "../vendor/marked.js";

/** Tags without attributes that documents use for small things; every other tag is shown as text. */
const PLAIN_TAG = /^<\/?(b|br|code|del|em|i|kbd|s|samp|small|strong|sub|sup)\s*\/?>$/i;

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    html: (/** @type {{ text: string, raw: string }} */ token) => (PLAIN_TAG.test(token.raw.trim()) ? token.raw : escaped(token.raw)),
  },
});

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node instanceof HTMLAnchorElement) {
    const href = node.getAttribute("href") ?? "";
    if (/^(https?:|mailto:)/i.test(href)) {
      node.target = "_blank";
      node.rel = "noopener noreferrer";
    } else if (!href.startsWith("#")) node.removeAttribute("href");
  }
  if (node instanceof HTMLImageElement) {
    const source = node.getAttribute("src") ?? "";
    if (!source.startsWith("data:image/")) {
      // Loading it would tell another host that this was read.
      const words = document.createTextNode(`[image: ${node.alt || source}]`);
      node.replaceWith(words);
    }
  }
});

const ALLOWED = [
  "a", "b", "blockquote", "br", "code", "del", "dd", "dl", "dt", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "i", "img", "input",
  "kbd", "li", "ol", "p", "pre", "s", "samp", "small", "strong", "sub", "sup", "table", "tbody", "td", "th", "thead", "tr", "ul",
];

/** @param {string} text @returns {DocumentFragment} */
export function fragment(text) {
  const made = DOMPurify.sanitize(/** @type {string} */ (marked.parse(text, { async: false })), {
    ALLOWED_TAGS: ALLOWED, ALLOWED_ATTR: ["href", "title", "alt", "src", "align", "start", "type", "checked", "disabled"],
    ALLOW_DATA_ATTR: false, RETURN_DOM_FRAGMENT: true,
  });
  for (const box of made.querySelectorAll("input")) {
    if (box.type === "checkbox") box.disabled = true;
    else box.remove();
  }
  return made;
}

/** Markdown as a reader sees it. @param {{ text: string, class?: string }} props */
export function Markdown({ text, class: name }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => place.current?.replaceChildren(fragment(text)), [text]);
  return html`<div class=${`document ${name ?? ""}`} ref=${place}></div>`;
}
