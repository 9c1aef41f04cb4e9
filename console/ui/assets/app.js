// On every page: forms are sent without losing what was typed.
import { follow, html, swap } from "./page.js";

const body = document.body;
const here = () => location.href.split("#")[0];
let shown = here();

// lost says that the server does not answer; "" takes the sentence away.
function lost(words) {
  let note = document.getElementById("lost");
  if (!words) { note?.remove(); return; }
  if (!note) {
    note = document.createElement("p");
    note.id = "lost"; note.className = "note warn lost-note"; note.role = "alert";
    body.append(note);
  }
  note.textContent = words;
}

// send posts a form and shows the answer. Without one, and where the answer is only a refusal, the form stays as it is.
async function send(form, button) {
  const data = new FormData(form, button);
  const file = form.enctype === "multipart/form-data";
  form.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(button?.hasAttribute("formaction") ? button.formAction : form.action, {
      method: "POST", body: file ? data : new URLSearchParams(data), credentials: "same-origin", headers: { Accept: "text/html" },
    });
    const kind = answer.headers.get("Content-Type") || "";
    if (!answer.ok && kind.startsWith("text/plain")) { lost((await answer.text()).trim().slice(0, 300)); return; }
    if (!kind.startsWith("text/html")) { throw new Error("no page"); }
    const page = html(await answer.text());
    const refused = page.getElementById("problem")?.textContent.trim();
    lost(refused);
    if (refused) { return; }
    if (/\/(login|prove)$/.test(new URL(answer.url).pathname)) { (await import("./typed.js")).keep(form.action, data); }
    if (answer.redirected && answer.url !== shown) { history.pushState(null, "", shown = answer.url); }
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
window.addEventListener("popstate", () => { if (here() !== shown) { location.reload(); } });
document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") { document.querySelectorAll("details.menu[open]").forEach((d) => { d.open = false; d.querySelector("summary").focus(); }); }
});
document.querySelector("[data-errors]")?.focus();
follow(lost);

function dress() { if (document.querySelector("#f-code, [data-copy]")) { import("./copy.js").then((m) => m.dress()); } }
document.addEventListener("page", dress);
dress();
