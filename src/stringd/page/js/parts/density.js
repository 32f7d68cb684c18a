/** Where much happened and where something failed, beside a list; what is in view has a frame. */
import { html } from "../html.js";

const BIN = 4;
const WIDTH = 24;

/**
 * @param {{ rows: { mark?: string, count?: number }[], height: number, from: number, to: number, jump: (row: number) => void }} props
 */
export function Density({ rows, height, from, to, jump }) {
  const bins = Math.max(1, Math.floor(height / BIN));
  const [counts, bad] = [new Float64Array(bins), new Uint8Array(bins)];
  rows.forEach((row, at) => {
    const bin = Math.min(bins - 1, Math.floor((at / rows.length) * bins));
    counts[bin] = (counts[bin] ?? 0) + (row.count ?? 1);
    if (row.mark === "failed") bad[bin] = 1;
  });
  const most = Math.max(1, ...counts);
  const y = (/** @type {number} */ row) => (row / Math.max(1, rows.length)) * height;
  return html`<svg class="density" width=${WIDTH} height=${height} aria-hidden="true" onClick=${(/** @type {MouseEvent} */ e) => jump(Math.floor((e.offsetY / height) * rows.length))}>
    ${Array.from(counts, (count, bin) => count > 0 && html`<rect class=${bad[bin] ? "bad" : ""} x="3" y=${bin * BIN} width=${Math.max(2, Math.sqrt(count / most) * (WIDTH - 6))} height=${BIN - 1} />`)}
    <rect class="frame" x="1" y=${y(from) + 0.5} width=${WIDTH - 2} height=${Math.max(6, y(to) - y(from)) - 1} /></svg>`;
}
