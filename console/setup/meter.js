// meter says how good a password is, by its length and by how many different signs it has.
function meter(note) {
  const typed = document.getElementById(note.dataset.meter)?.value || "", signs = new Set(typed).size;
  const grade = typed.length < 8 ? 0 : typed.length < 12 || signs < 7 ? 1 : typed.length < 16 ? 2 : 3;
  note.textContent = note.dataset.words.split("|")[grade];
  note.hidden = typed === "";
}
document.addEventListener("input", (event) => {
  const note = document.querySelector(`[data-meter="${event.target.id}"]`);
  if (note && event.target.id) { meter(note); }
});
