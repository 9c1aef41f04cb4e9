// Makes parts of the page from text of the server, which has escaped what others wrote.
const rules = globalThis.trustedTypes
  ? trustedTypes.createPolicy("console", { createHTML: (text) => text })
  : { createHTML: (text) => text };

// html reads a page or a part of one, as with script.
export function html(text) {
  const page = new DOMParser().parseFromString(rules.createHTML(text), "text/html");
  page.querySelectorAll("noscript").forEach((e) => e.remove());
  return page;
}

// able finds what has an id, or what may be pressed in its place.
function able(id) {
  const e = document.getElementById(id);
  return e?.disabled ? e.form?.querySelector("[data-stay]:enabled") : e;
}

// swap shows another page in the place of this one, but for what does not differ.
export function swap(page) {
  const stay = document.activeElement?.closest("[data-stay]")?.id;
  document.title = page.title;
  document.body.replaceChildren(...page.body.childNodes);
  for (const name of page.body.getAttributeNames()) { document.body.setAttribute(name, page.body.getAttribute(name)); }
  const root = document.documentElement, { lang, dataset: { theme } } = page.documentElement;
  root.lang = lang;
  if (theme) { root.dataset.theme = theme; } else { delete root.dataset.theme; }
  for (const script of document.body.querySelectorAll("script[src]")) { import(script.src); } // what is put in runs none
  const kept = stay && able(stay);
  const first = document.querySelector("[data-errors]") || document.querySelector("[data-focus]") || kept || document.getElementById("main");
  first?.focus();
  if (first !== kept) { first?.scrollIntoView({ block: "start" }); }
  document.dispatchEvent(new Event("page"));
}

// exchange puts a part of the page in the place of the one with its id, unless somebody works there or presses it.
export function exchange(id, text) {
  const old = document.getElementById(id);
  if (!old) { return true; }
  if (old.contains(document.activeElement) && document.activeElement.matches("input, select, textarea, summary") || old.querySelector("dialog[open], form[aria-busy=true], :active")) { return false; }
  const next = html(text).getElementById(id);
  if (!next || next.isEqualNode(old)) { return true; }
  const focused = old.contains(document.activeElement) ? document.activeElement.id : "";
  const open = [...old.querySelectorAll("details[open][id]")].map((d) => d.id);
  old.replaceWith(next);
  for (const d of open) { const now = document.getElementById(d); if (now) { now.open = true; } }
  if (focused) { able(focused)?.focus(); }
  return true;
}

// follow shows what changes, in parts of the page with a topic: <p id="x" data-topic="devices">.
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
