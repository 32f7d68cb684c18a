/** Markdown from documents and models, through the one door: parsed, sanitised, foreign images left out. */
import { html, useLayoutEffect, useRef } from "./html.js";
import DOMPurify from "../vendor/purify.js";
import { Marked } from "../vendor/marked.js";

/** Tags without attributes that documents use for small things; every other tag is shown as text. */
const PLAIN_TAG = /^<\/?(b|br|code|del|em|i|kbd|s|samp|small|strong|sub|sup)\s*\/?>$/i;

/** @param {string} text */
const escaped = (text) => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");

const OPTIONS = {
  gfm: true,
  breaks: false,
  renderer: {
    html: (/** @type {{ text: string, raw: string }} */ token) => (PLAIN_TAG.test(token.raw.trim()) ? token.raw : escaped(token.raw)),
  },
};
const marked = new Marked(OPTIONS);

/** `[Label][@id]`: how a document of a topic names what can be opened from it. */
const SHORTCUT = {
  name: "shortcut",
  level: "inline",
  start: (/** @type {string} */ text) => text.indexOf("["),
  /** @this {any} @param {string} text */
  tokenizer(text) {
    const found = /^\[([^[\]\n]+)\]\[@([\w.-]+)\]/.exec(text);
    return found ? { type: "shortcut", raw: found[0], id: found[2], tokens: this.lexer.inlineTokens(found[1]) } : undefined;
  },
  /** @this {any} @param {any} token */
  renderer(token) {
    return `<a href="@${token.id}">${this.parser.parseInline(token.tokens)}</a> <small>@${token.id}</small>`;
  },
};
const documents = new Marked({ ...OPTIONS, extensions: [SHORTCUT] });

DOMPurify.addHook("afterSanitizeAttributes", (node) => {
  if (node instanceof HTMLAnchorElement) {
    const href = node.getAttribute("href") ?? "";
    if (/^(https?:|mailto:)/i.test(href)) {
      node.target = "_blank";
      node.rel = "noopener noreferrer";
    } else if (!href.startsWith("#")) {
      // Not an address of this page; a topic may open it.
      node.removeAttribute("href");
      if (href) node.dataset.target = href;
    }
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

/** @param {string} text @param {Marked} [parser] @returns {DocumentFragment} */
export function fragment(text, parser = marked) {
  const made = DOMPurify.sanitize(/** @type {string} */ (parser.parse(text, { async: false })), {
    ALLOWED_TAGS: ALLOWED, ALLOWED_ATTR: ["href", "title", "alt", "src", "align", "start", "type", "checked", "disabled"],
    ALLOW_DATA_ATTR: false, RETURN_DOM_FRAGMENT: true,
  });
  for (const box of made.querySelectorAll("input")) {
    if (box.type === "checkbox") box.disabled = true;
    else box.remove();
  }
  return made;
}

/** A document of a topic: what it leads to is in `data-target`, or in an `href` that begins with `#`. @param {string} text */
export const documentFragment = (text) => fragment(text, documents);

/** Markdown as a reader sees it. @param {{ text: string, class?: string }} props */
export function Markdown({ text, class: name }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => place.current?.replaceChildren(fragment(text)), [text]);
  return html`<div class=${`document ${name ?? ""}`} ref=${place}></div>`;
}
