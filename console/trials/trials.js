// Voices side by side: the keys 1 to 9 play them, one at a time, and Enter picks the one that was played.
const list = () => document.querySelector("[data-play]");

function play(n) {
  const row = list()?.querySelector(`[data-nth="${n}"]`), sound = row?.querySelector("audio");
  if (!sound) { return; }
  sound.currentTime = 0;
  sound.play().catch(() => {}); // another key was pressed before it began
  (row.querySelector("[data-pick]") || sound).focus();
}

function dress() {
  const hint = document.querySelector("[data-keys]");
  if (hint) { hint.hidden = false; }
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.altKey || event.metaKey || event.target.matches("input, select, textarea")) { return; }
  if (event.key >= "1" && event.key <= "9" && list()) { event.preventDefault(); play(event.key); }
});
// Events of sounds do not bubble, so they are caught on their way down.
document.addEventListener("play", (event) => {
  for (const other of document.querySelectorAll("audio")) {
    if (other !== event.target) { other.pause(); }
    other.closest("[data-nth]")?.toggleAttribute("data-playing", other === event.target);
  }
}, true);
document.addEventListener("ended", (event) => event.target.closest("[data-nth]")?.removeAttribute("data-playing"), true);
document.addEventListener("page", dress);
dress();
