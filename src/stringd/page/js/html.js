/** Markup as tagged templates. Values become text or attributes, never markup. */
import { h } from "../vendor/preact.js";
import htm from "../vendor/htm.js";

export const html = htm.bind(h);
export { Fragment, render } from "../vendor/preact.js";
export { useEffect, useLayoutEffect, useMemo, useRef, useState } from "../vendor/hooks.js";
export { batch, computed, effect, signal, useComputed, useSignal } from "../vendor/signals.js";
