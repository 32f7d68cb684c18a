/** A document of a topic, with its headings and links to follow. */
import { html, useLayoutEffect, useRef } from "../html.js";
import { documentFragment } from "../markdown.js";

/** @param {{ text: string, outline: any[], follow: (target: string) => void }} props */
export function DocumentPage({ text, outline, follow }) {
  const place = useRef(/** @type {HTMLDivElement | null} */ (null));
  useLayoutEffect(() => {
    const made = documentFragment(text);
    anchor(made, outline);
    for (const link of made.querySelectorAll("a")) {
      const target = link.dataset.target ?? "";
      // Focusable, and the address is seen before it is followed.
      if (target) Object.assign(link, { href: `#${target}`, title: `Open ${target}` });
    }
    place.current?.replaceChildren(made);
  }, [text, outline]);
  /** @param {MouseEvent} event */
  const click = (event) => {
    const link = event.target instanceof Element ? event.target.closest("a") : null;
    if (!link || link.target) return;
    event.preventDefault();
    const target = link.dataset.target ?? link.getAttribute("href") ?? "";
    if (target.length > 1 && !/[\s\p{Cc}]/u.test(target)) follow(target);
  };
  return html`<div class="document page" ref=${place} onClick=${click}></div>`;
}

/** @param {string} text */
const plain = (text) => text.replace(/\{#[^{}\s]+\}/g, "").replace(/[`*_[\]\s]+|\(\S*\)/g, "").toLowerCase();

/** Give every heading the mark that opens its block. @param {DocumentFragment} made @param {any[]} outline */
function anchor(made, outline) {
  const left = outline.filter((each) => each.level > 0);
  for (const heading of made.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
    const words = heading.lastChild;
    if (words instanceof Text) words.data = words.data.replace(/\s*\{#[^{}\s]+\}\s*$/, "");
    const at = left.findIndex((each) => plain(each.title) === plain(heading.textContent ?? ""));
    if (at < 0) continue;
    const [found] = left.splice(0, at + 1).slice(-1);
    const mark = document.createElement("a");
    mark.className = "anchor";
    mark.dataset.target = `#${found.id}`;
    mark.textContent = "#";
    mark.ariaLabel = `Open block ${found.id}`;
    heading.prepend(mark);
  }
}
