// Fills in a code that the address of the page ends with, and copies what [data-copy] names.
let seen = "";
export function dress() {
  const code = document.getElementById("f-code");
  if (code && location.hash && !document.getElementById(location.hash.slice(1))) {
    code.value = seen = location.hash.slice(1);
    history.replaceState(null, "", location.pathname + location.search);
  }
  if (code && !code.value) { code.value = seen; }
  for (const b of document.querySelectorAll("[data-copy]")) { b.hidden = !navigator.clipboard; }
}
window.addEventListener("hashchange", dress);
document.addEventListener("click", async (event) => {
  const b = event.target.closest("[data-copy]");
  if (!b) { return; }
  await navigator.clipboard.writeText(document.getElementById(b.dataset.copy).textContent);
  b.setAttribute("aria-pressed", "true");
});
