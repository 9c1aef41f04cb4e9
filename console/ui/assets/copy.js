// Fills in the code of an address, and copies what [data-copy] names.
let seen = "";
export function dress() {
  const code = document.getElementById("f-code");
  const hash = location.hash.slice(1);
  if (code && hash && !document.getElementById(hash)) {
    code.value = seen = hash;
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
