// Follows what changes, for parts of a page with a topic: <p id="x" data-topic="devices">.
import { exchange } from "./page.js";

export function follow(lost) {
  let source = null, paused = false, waiting = new Map();

  const topics = () => [...new Set([...document.querySelectorAll("[data-topic]")].map((e) => e.dataset.topic))];
  function tell(state) {
    for (const b of document.querySelectorAll("[data-live-switch]")) {
      b.hidden = topics().length === 0;
      b.textContent = document.body.dataset[state];
      b.setAttribute("aria-pressed", String(paused));
      b.classList.toggle("lost", state === "again");
    }
  }
  function put(part) { exchange(part.id, part.html) ? waiting.delete(part.id) : waiting.set(part.id, part); }
  function stop() { source?.close(); source = null; }
  function start() {
    stop();
    const on = topics();
    if (paused || document.hidden || on.length === 0) { tell(paused ? "paused" : "again"); return; }
    source = new EventSource("/console/events?lang=" + document.documentElement.lang + "&on=" + encodeURIComponent(on.join(",")));
    source.onopen = () => { lost(""); tell("live"); };
    source.onerror = () => {
      tell("again");
      if (source?.readyState === EventSource.CLOSED) { stop(); setTimeout(() => { if (!source) { start(); } }, 2000); }
    };
    source.onmessage = (event) => put(JSON.parse(event.data));
    source.addEventListener("gone", () => { stop(); location.reload(); });
  }
  document.addEventListener("visibilitychange", start);
  document.addEventListener("page", () => { waiting.clear(); start(); });
  for (const event of ["focusout", "pointerup", "pointercancel", "keyup"]) {
    document.addEventListener(event, () => setTimeout(() => waiting.forEach(put), 50));
  }
  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-live-switch]")) { paused = !paused; start(); }
  });
  window.addEventListener("pagehide", stop);
  start();
}
