/** Keys: what each does now. Nothing happens while somebody types. */

/** @typedef {{ key: string, what: string, run: (event: KeyboardEvent) => void, shown?: boolean }} Key */

/** @type {{ name: string, keys: Key[] }[]} */
const layers = [];

/**
 * Offer keys until the returned function is called; later layers come first.
 * @param {string} name @param {Key[]} keys
 */
export function offer(name, keys) {
  const layer = { name, keys };
  layers.push(layer);
  return () => {
    layers.splice(layers.indexOf(layer), 1);
  };
}

/** Everything that can be pressed now, by layer. */
export const offered = () => layers.map(({ name, keys }) => ({ name, keys: keys.filter((each) => each.shown !== false) }));

/** @param {EventTarget | null} target */
export function isTyping(target) {
  return (
    target instanceof HTMLTextAreaElement || target instanceof HTMLSelectElement ||
    (target instanceof HTMLInputElement && !["checkbox", "radio", "button"].includes(target.type)) ||
    (target instanceof HTMLElement && target.isContentEditable)
  );
}

/** @param {KeyboardEvent} event */
function name(event) {
  const control = event.ctrlKey || event.metaKey ? "Ctrl-" : "";
  return control + (event.key === " " ? "Space" : event.key);
}

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.repeat && !/^(j|k|Arrow)/.test(event.key)) return;
  const pressed = name(event);
  if (isTyping(event.target) && !pressed.startsWith("Ctrl-") && pressed !== "Escape") return;
  for (const layer of [...layers].reverse()) {
    const found = layer.keys.find((each) => each.key === pressed);
    if (found) {
      event.preventDefault();
      found.run(event);
      return;
    }
  }
});
