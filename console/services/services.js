// A service can be dragged by its number to another place of its list, beside the buttons that move it.
let held = null;
const row = (event) => event.target.closest?.(".services > li");
const fits = (li) => held && li && li !== held && li.parentNode === held.parentNode;

document.addEventListener("dragstart", (event) => {
  if (!event.target.closest?.(".grip")) { return; }
  held = row(event);
  event.dataTransfer.effectAllowed = "move";
  event.dataTransfer.setData("text/plain", held.innerText);
  event.dataTransfer.setDragImage(held, 0, 0);
});
document.addEventListener("dragover", (event) => {
  if (fits(row(event))) { event.preventDefault(); }
});
document.addEventListener("drop", (event) => {
  const li = row(event);
  if (!fits(li)) { return; }
  event.preventDefault();
  const form = held.querySelector("form.move");
  form.elements.at.value = [...li.parentNode.children].indexOf(li);
  form.requestSubmit(form.querySelector('[value="to"]'));
});
document.addEventListener("dragend", () => { held = null; });
