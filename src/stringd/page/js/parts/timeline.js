/** When each agent thought, used a tool or waited for the owner. A span of 2 ms is still seen among hours. */
import { html, useEffect, useLayoutEffect, useRef, useState } from "../html.js";
import { offer } from "../keys.js";
import { query, setQuery } from "../route.js";
import { shown } from "../text.js";
import { clock, now, took } from "../time.js";

const LANE = 16;
const ROUND = 18;
const NAMES = 104;
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 14400, 28800, 86400].map((s) => s * 1000);

/** @param {{ model: import("../run_model.js").RunModel, version: number, chosen: string, choose: (name: string) => void }} props */
export function Timeline({ model, chosen, choose }) {
  const box = useRef(/** @type {HTMLDivElement | null} */ (null));
  const [width, setWidth] = useState(800);
  const drag = useRef(/** @type {number | null} */ (null));
  useLayoutEffect(() => {
    const place = box.current;
    if (!place) return undefined;
    const watch = new ResizeObserver(() => setWidth(Math.max(240, place.clientWidth)));
    watch.observe(place);
    return () => watch.disconnect();
  }, []);
  const begin = model.startedAt || now.value;
  const end = Math.max(model.endedAt || now.value, begin + 1000);
  // What is looked at is part of the address, in milliseconds of the run.
  const kept = /^(\d+)-(\d+)$/.exec(query.value.get("zoom") ?? "");
  const view = kept && model.startedAt ? [begin + Number(kept[1]), begin + Math.max(Number(kept[1]) + 10, Number(kept[2]))] : null;
  const setView = (/** @type {[number, number] | null} */ next) => setQuery("zoom", next && `${Math.round(next[0] - begin)}-${Math.round(next[1] - begin)}`);
  const [from = begin, to = end] = view ?? [];
  const scale = (width - NAMES - 24) / (to - from);
  const x = (/** @type {number} */ at) => NAMES + (Math.min(Math.max(at, from), to) - from) * scale;
  const time = (/** @type {number} */ px) => from + (px - NAMES) / scale;
  const agents = [...model.agents.values()];
  const top = model.rounds.length ? ROUND : 0;
  const height = top + agents.length * LANE + 20;

  /** @param {number} factor @param {number} [around] */
  const zoom = (factor, around = (from + to) / 2) => {
    const [a, b] = [around - (around - from) * factor, around + (to - around) * factor];
    setView(b - a >= end - begin ? null : [Math.max(begin, a), Math.min(end, Math.max(b, a + 10))]);
  };
  const zooming = useRef(zoom);
  zooming.current = zoom;
  useEffect(
    () => offer("timeline", [
      { key: "+", what: "zoom in", run: () => zooming.current(0.5) },
      { key: "-", what: "zoom out", run: () => zooming.current(2) },
      { key: "0", what: "whole run", run: () => setView(null) },
      { key: "t", what: "timeline", run: () => box.current?.focus() },
    ]),
    [],
  );
  /** @param {PointerEvent} event */
  const place = (event) => event.clientX - (box.current?.getBoundingClientRect().left ?? 0);
  const shortest = Math.min(...agents.flatMap((each) => each.spans.map((span) => (span.to ?? end) - span.from)));
  const step = STEPS.find((each) => each * scale >= 72) ?? 86_400_000;
  const ticks = [];
  for (let at = begin + Math.ceil((from - begin) / step) * step; at <= to; at += step) ticks.push(at);

  return html`<section class="timeline" aria-label="Timeline">
    <header><b>Timeline</b>
      <span class="legend"><svg viewBox="0 0 16 6"><rect class="model" width="16" height="6" /></svg> model</span>
      <span class="legend"><svg viewBox="0 0 16 6"><rect class="tool" x="0.5" y="0.5" width="15" height="5" /></svg> tool</span>
      <span class="legend"><svg viewBox="0 0 16 6"><rect class="waits" x="0.5" y="0.5" width="15" height="5" /></svg> waits for you</span>
      <span class="end quiet">${view ? html`<button class="button plain" onClick=${() => setView(null)}>Whole run</button>` : Number.isFinite(shortest) ? `drag to zoom, shortest ${took(shortest)}` : ""}</span>
    </header>
    <div ref=${box} class="lanes" tabindex="0" role="group" aria-label="Lanes, drag or + and - to zoom"
      onWheel=${(/** @type {WheelEvent} */ e) => { if (!e.ctrlKey && !e.shiftKey) return; e.preventDefault(); zoom(e.deltaY > 0 ? 1.25 : 0.8, time(place(/** @type {any} */ (e)))); }}
      onPointerDown=${(/** @type {PointerEvent} */ e) => (drag.current = place(e))}
      onPointerUp=${(/** @type {PointerEvent} */ e) => {
        const start = drag.current;
        drag.current = null;
        if (start === null || Math.abs(place(e) - start) < 6) return;
        const [a, b] = [time(Math.min(start, place(e))), time(Math.max(start, place(e)))];
        setView([Math.max(begin, a), Math.min(end, Math.max(b, a + 10))]);
      }}>
      <svg width=${width} height=${height} role="img" aria-label=${`${agents.length} agents over ${clock(end - begin)}`}>
        <defs><pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><rect class="hatch" width="2" height="6" /></pattern></defs>
        ${ticks.map((at) => html`<g><line class="tick" x1=${x(at)} x2=${x(at)} y1=${top} y2=${height - 18} /><text x=${x(at)} y=${height - 4} class="time">${clock(at - begin)}</text></g>`)}
        ${model.rounds.filter((round) => (round.to ?? end) > from && round.from < to).map((round) => {
          const [a, b] = [x(round.from) + 1, x(round.to ?? end) - 1];
          return html`<g class="round"><path d=${`M${a} ${top - 2}v-4H${Math.max(a, b)}v4`} />${b - a > 56 && html`<text x=${a + 5} y="10">round ${round.number}</text>`}</g>`;
        })}
        ${agents.map((agent, lane) => html`<g onClick=${() => choose(agent.name)} class=${`lane${agent.name === chosen ? " chosen" : ""}`}>
          <rect class="back" x="0" y=${top + lane * LANE} width=${width} height=${LANE} />
          <text x="16" y=${top + lane * LANE + 12} class="name">${shown(agent.name).slice(0, 13)}</text>
          ${agent.spans.filter((span) => (span.to ?? end) >= from && span.from <= to).map((span) => {
            const [a, b] = [x(span.from), x(span.to ?? end)];
            const thin = b - a < 2;
            return html`<rect class=${`span ${span.kind}`} x=${a} width=${thin ? 1.5 : b - a} y=${top + lane * LANE + (thin ? 1 : 5)} height=${thin ? LANE - 2 : 6}><title>${shown(span.label)}, ${took((span.to ?? end) - span.from)}</title></rect>`;
          })}
        </g>`)}
        ${!model.endedAt && html`<line class="now" x1=${x(end)} x2=${x(end)} y1="0" y2=${height - 18} /><text class="time end" x=${x(end) - 6} y="10">${top ? `${clock(end - begin)} now` : ""}</text>`}
      </svg>
    </div>
  </section>`;
}
