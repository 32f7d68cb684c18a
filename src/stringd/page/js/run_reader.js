/** A run as a view follows it: read whole, then heard as it goes on. */
import { useEffect, useRef, useState } from "./html.js";
import { link } from "./feed.js";
import { RunModel } from "./run_model.js";
import { followRun } from "./runs_socket.js";

/** Read a run whole, then follow it. @param {string} runId */
export const useRun = (runId) => useReader(runId, () => new RunModel());

/**
 * Read a run whole into what takes its messages, then follow it.
 * @template {{ seq: number, take: (message: any) => void }} T
 * @param {string} runId @param {() => T} make
 */
export function useReader(runId, make) {
  const model = useRef(/** @type {T | null} */ (null));
  model.current ??= make();
  const [version, setVersion] = useState(0);
  const [problem, setProblem] = useState("");
  useEffect(() => {
    const run = (model.current = make());
    let [ended, scheduled] = [false, false];
    let stop = () => {};
    const show = () => {
      if (scheduled || ended) return;
      scheduled = true;
      requestAnimationFrame(() => {
        scheduled = false;
        if (!ended) setVersion((each) => each + 1);
      });
    };
    read(runId, (message) => run.take(message), show, () => ended).then(() => {
      if (ended) return;
      stop = followRun(runId, (message) => { run.take(message); show(); }, run.seq + 1);
      show();
    }).catch((error) => !ended && setProblem(error.message));
    return () => { ended = true; stop(); };
  }, [runId, link.value === "gone"]);
  return { model: model.current, version, problem };
}

/**
 * What a run has said so far, in pieces that leave the page responsive.
 * @param {string} runId @param {(message: any) => void} take @param {() => void} show @param {() => boolean} ended
 */
async function read(runId, take, show, ended) {
  const answer = await fetch(`/runs/${encodeURIComponent(runId)}/events.jsonl`);
  if (!answer.ok || !answer.body) throw new Error((await answer.json().catch(() => ({}))).error ?? `The daemon answered ${answer.status}`);
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (let piece = await reader.read(); !piece.done; piece = await reader.read()) {
    if (ended()) return void reader.cancel();
    const lines = (rest + piece.value).split("\n");
    rest = lines.pop() ?? "";
    for (let at = 0; at < lines.length; at += 500) {
      for (const line of lines.slice(at, at + 500)) if (line) take(JSON.parse(line));
      show();
      if (at + 500 < lines.length) await new Promise((resolve) => setTimeout(resolve));
    }
  }
}
