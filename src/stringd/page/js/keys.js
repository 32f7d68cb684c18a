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

/** How long the second key of two may take. */
const PAIR_MS = 1500;
let [first, pressedAt] = ["", 0];

addEventListener("keydown", (event) => {
  if (event.defaultPrevented || event.altKey || event.repeat && !/^(j|k|Arrow)/.test(event.key)) return;
  const pressed = name(event);
  if (isTyping(event.target) && !pressed.startsWith("Ctrl-") && pressed !== "Escape") return;
  const pair = first && performance.now() - pressedAt < PAIR_MS ? `${first} ${pressed}` : "";
  first = "";
  const found = (pair && find(pair)) || find(pressed);
  if (found) {
    event.preventDefault();
    found.run(event);
  } else if (layers.some((layer) => layer.keys.some((each) => each.key.startsWith(`${pressed} `)))) [first, pressedAt] = [pressed, performance.now()];
});

/** @param {string} pressed */
function find(pressed) {
  for (const layer of [...layers].reverse()) {
    const found = layer.keys.find((each) => each.key === pressed);
    if (found) return found;
  }
  return undefined;
}
