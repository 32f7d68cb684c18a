/** The way to the comparison of two runs, which is loaded when somebody goes there. */
import { to } from "./route.js";

export const compareKeys = /** @type {[string, string][]} */ ([["j k", "step"], ["s", "swap"], ["?", "keys"]]);

/** The address that compares two runs. @param {string} a @param {string} b */
export const comparing = (a, b) => `${to("compare")}?a=${encodeURIComponent(a)}&b=${encodeURIComponent(b)}`;
