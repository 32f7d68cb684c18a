/** One topic as it is now: looked at once, then again when the feed says that something happened in it. */
import { effect, useEffect, useRef, useState } from "./html.js";
import { link, listen, topicKey, topics } from "./feed.js";
import { Terminal } from "./terminal.js";

const PAUSE_MS = 120;
const RETRY_MS = 1_000;

/** @param {string} user @param {string} topic */
export const topicAddress = (user, topic) => `/topics/${encodeURIComponent(user)}/${encodeURIComponent(topic)}`;

/**
 * @param {string} user @param {string} topic
 * @returns {{ view: any, problem: string, refresh: () => void }}
 */
export function useTopic(user, topic) {
  const [view, setView] = useState(/** @type {any} */ (null));
  const [problem, setProblem] = useState("");
  const again = useRef(() => {});
  useEffect(() => {
    let [ended, looking, wanted, timer] = [false, false, false, 0];
    setView(null);
    setProblem("");
    const look = async () => {
      if (looking) return void (wanted = true);
      // Before the feed is there nobody knows which topics are open; once it is, this runs again.
      if (link.value !== "live") return;
      if (!topics.value.has(topicKey({ user, topic }))) {
        setView(null);
        return setProblem("It is not open.");
      }
      looking = true;
      wanted = false;
      try {
        const answer = await fetch(topicAddress(user, topic));
        const body = await answer.json();
        if (ended) return;
        if (answer.ok) setView(body);
        setProblem(answer.ok ? "" : body.error);
      } catch {
        // The page says at its top that the daemon is gone; what was seen stays.
      } finally {
        looking = false;
        if (wanted && !ended) soon();
      }
    };
    const soon = () => {
      if (!timer) timer = setTimeout(() => { timer = 0; look(); }, PAUSE_MS);
    };
    again.current = soon;
    const unheard = listen((event) => event.user === user && event.topic === topic && soon());
    const unlinked = effect(() => { if (link.value === "live") soon(); });
    return () => {
      ended = true;
      clearTimeout(timer);
      unheard();
      unlinked();
    };
  }, [user, topic]);
  return { view, problem, refresh: () => again.current() };
}

/**
 * The terminal of a bash topic while it prints; `changed` is called when a command begins or ends.
 * @param {string} user @param {string} topic @param {() => void} changed
 */
export function useTerminal(user, topic, changed) {
  const terminal = useRef(new Terminal());
  const [version, setVersion] = useState(0);
  useEffect(() => {
    terminal.current = new Terminal();
    let [ended, scheduled, timer] = [false, false, 0];
    /** @type {EventSource | undefined} */ let source;
    const show = () => {
      scheduled = false;
      if (!ended) setVersion((each) => each + 1);
    };
    /** @param {MessageEvent<string>} message */
    const take = (message) => {
      const event = JSON.parse(message.data);
      terminal.current.take(event);
      if (event.kind !== "printed") changed();
      if (!scheduled) requestAnimationFrame(show);
      scheduled = true;
    };
    const open = () => {
      terminal.current = new Terminal();
      source = new EventSource(`${topicAddress(user, topic)}/output`);
      for (const kind of ["began", "printed", "resized", "ended", "missed", "cleared"]) source.addEventListener(kind, take);
      source.onerror = () => {
        // A browser gives up after an answer that is not a stream: the topic may come back.
        if (source?.readyState === EventSource.CLOSED && !ended) timer = setTimeout(open, RETRY_MS);
      };
    };
    open();
    return () => {
      ended = true;
      clearTimeout(timer);
      source?.close();
    };
  }, [user, topic]);
  return { terminal: terminal.current, version };
}
