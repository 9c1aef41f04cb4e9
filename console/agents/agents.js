// The editor of an agent: shows the prompt that was chosen, and looks for tools.
function dress() {
  const editor = document.getElementById("editor");
  if (!editor) { return; }
  const choose = () => {
    const from = editor.querySelector("[name=from]:checked")?.value;
    for (const part of editor.querySelectorAll("[data-when]")) { part.hidden = part.dataset.when !== from; }
  };
  editor.addEventListener("change", choose);
  choose();
  const box = editor.querySelector("[data-filter]"), filter = box?.querySelector("input");
  if (!filter) { return; }
  box.hidden = false;
  filter.addEventListener("keydown", (event) => { if (event.key === "Enter") { event.preventDefault(); } });
  filter.addEventListener("input", () => {
    const wanted = filter.value.trim().toLowerCase();
    for (const group of editor.querySelectorAll("[data-group]")) {
      let some = false;
      for (const item of group.querySelectorAll("[data-item]")) {
        item.hidden = !item.textContent.toLowerCase().includes(wanted);
        some ||= !item.hidden;
      }
      group.hidden = !some;
    }
  });
}
document.addEventListener("page", dress);
dress();
