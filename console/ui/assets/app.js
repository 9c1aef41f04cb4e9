// The script of every page: forms are sent without losing what was typed.
import { html, swap } from "./page.js";
import { follow } from "./live.js";

const body = document.body;

// lost says that the server does not answer; "" takes the sentence away.
function lost(words) {
  let note = document.getElementById("lost");
  if (!words) { note?.remove(); return; }
  if (!note) {
    note = document.createElement("p");
    note.id = "lost"; note.className = "note warn lost-note"; note.setAttribute("role", "alert");
    body.append(note);
  }
  note.textContent = words;
}

// What was typed into a form whose answer was the page for a password; it is put back when the form is shown again.
let typed = null;
const asksPassword = (at) => /^\/console\/(login|prove)$/.test(at.pathname);
function take(form) {
  const fields = [...form.elements].filter((e) => e.name && !/^(hidden|file|password|submit|button|fieldset)$/.test(e.type));
  return { action: form.action, fields: fields.map((e) => ({ name: e.name, value: e.value, checked: e.checked, choice: /^(radio|checkbox)$/.test(e.type) })) };
}
function give() {
  if (!typed || asksPassword(location)) { return; }
  const form = [...document.forms].find((f) => f.action === typed.action && f.method === "post");
  for (const was of form ? typed.fields : []) {
    const all = [...form.elements].filter((e) => e.name === was.name);
    const now = was.choice ? all.find((e) => e.value === was.value) : all[0];
    if (now) { if (was.choice) { now.checked = was.checked; } else { now.value = was.value; } }
  }
  typed = null;
}

// send posts a form and shows the answer. Without one, and where the answer is only a refusal, the form stays as it is.
async function send(form, button) {
  const data = new FormData(form, button);
  const file = form.enctype === "multipart/form-data";
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(button?.formAction && button.hasAttribute("formaction") ? button.formAction : form.action, {
      method: "POST", body: file ? data : new URLSearchParams(data), credentials: "same-origin", headers: { Accept: "text/html" },
    });
    const kind = answer.headers.get("Content-Type") || "";
    if (!answer.ok && kind.startsWith("text/plain")) { lost((await answer.text()).trim().slice(0, 300)); return; }
    if (!kind.startsWith("text/html")) { throw new Error("no page"); }
    const page = html(await answer.text());
    const refusal = page.getElementById("problem");
    lost(refusal && !answer.ok ? refusal.textContent.trim() : "");
    if (refusal && !answer.ok) { return; }
    if (asksPassword(new URL(answer.url))) { typed ??= take(form); }
    if (answer.redirected) { history.pushState(null, "", answer.url); }
    swap(page);
  } catch {
    lost(body.dataset.lost);
  } finally {
    form.removeAttribute("aria-busy");
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || form.method !== "post" || form.hasAttribute("data-whole")) { return; }
  event.preventDefault();
  if (form.getAttribute("aria-busy") === "true") { return; }
  if (event.submitter?.dataset.sure && !confirm(event.submitter.dataset.sure)) { return; }
  send(form, event.submitter);
});
window.addEventListener("popstate", () => location.reload());
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { document.querySelectorAll("details.menu[open]").forEach((d) => { d.open = false; d.querySelector("summary").focus(); }); }
});
document.querySelector("[data-errors]")?.focus();
follow(lost);

// A code from the address of the page, and copying.
let seen = "";
function dress() {
  const code = document.getElementById("f-code");
  if (code && location.hash) {
    seen = location.hash.slice(1);
    history.replaceState(null, "", location.pathname + location.search);
  }
  if (code && !code.value) { code.value = seen; }
  for (const b of document.querySelectorAll("[data-copy]")) { b.hidden = !navigator.clipboard; }
}
document.addEventListener("click", async (event) => {
  const b = event.target.closest("[data-copy]");
  if (!b) { return; }
  await navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent);
  b.setAttribute("aria-pressed", "true");
});
document.addEventListener("page", () => { dress(); give(); });
dress();
