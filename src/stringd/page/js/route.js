/** One address a view; back, forward and reload keep the place. */
import { computed, signal } from "./html.js";

const ROOT = "/ui";

/** @type {import("../vendor/signals.js").Signal<URL>} */
const address = signal(new URL(location.href));
addEventListener("popstate", () => (address.value = new URL(location.href)));

/** The words of the path behind /ui. */
export const path = computed(() =>
  address.value.pathname.slice(ROOT.length).split("/").filter(Boolean).map(decode),
);
export const query = computed(() => address.value.searchParams);

/** @param {string} text */
function decode(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

/** The address of a view. @param {...string} words */
export function to(...words) {
  return `${ROOT}/${words.map(encodeURIComponent).join("/")}`;
}

/** Show another view. @param {string} href @param {{ replace?: boolean }} [how] */
export function go(href, how = {}) {
  const next = new URL(href, location.href);
  history[how.replace ? "replaceState" : "pushState"](null, "", next);
  address.value = next;
}

/** Change one part of what is behind the question mark. @param {string} name @param {string | null} value */
export function setQuery(name, value) {
  const next = new URL(address.value);
  if (value == null || value === "") next.searchParams.delete(name);
  else next.searchParams.set(name, value);
  go(next.href, { replace: true });
}

// Links inside the page change the view without loading it again.
addEventListener("click", (event) => {
  if (event.defaultPrevented || event.button || event.metaKey || event.ctrlKey || event.shiftKey) return;
  const link = event.target instanceof Element ? event.target.closest("a[href]") : null;
  if (!(link instanceof HTMLAnchorElement) || link.target || link.origin !== location.origin) return;
  if (link.pathname !== ROOT && !link.pathname.startsWith(`${ROOT}/`)) return;
  event.preventDefault();
  go(link.href);
});
