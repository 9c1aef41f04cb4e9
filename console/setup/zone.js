// Offers the time zone of this browser, and shows the time in the one that is typed.
const clock = (zone) => {
  try {
    return new Intl.DateTimeFormat("en-GB", { timeZone: zone, hour: "2-digit", minute: "2-digit" }).format();
  } catch { return ""; }
};
function show(note, words = note.dataset.words) {
  const zone = document.getElementById(note.dataset.zone).value.trim(), at = zone && clock(zone);
  note.hidden = !at;
  const [before, between, after] = words.split("%s");
  note.textContent = at ? before + zone + between + at + after : "";
}
function dress() {
  const note = document.querySelector("[data-zone]");
  if (!note) { return; }
  const field = document.getElementById(note.dataset.zone), own = Intl.DateTimeFormat().resolvedOptions().timeZone;
  const offered = note.dataset.offer && own && own !== "Etc/Unknown" && field.value === field.defaultValue;
  if (offered) { field.value = own; }
  show(note, offered ? note.dataset.offer : undefined);
}
document.addEventListener("input", (event) => {
  const note = document.querySelector(`[data-zone="${event.target.id}"]`);
  if (note && event.target.id) { show(note); }
});
document.addEventListener("page", dress);
dress();
