// Keeps what was typed while the page asks for the password, and puts it back when the form is shown again.
let kept = null;

const asking = () => /^\/console\/(login|prove)$/.test(location.pathname);

export function keep(action, data) { kept ??= { action, data }; }

document.addEventListener("page", () => {
  if (!kept || asking()) { return; }
  const form = [...document.forms].find((f) => f.action === kept.action && f.method === "post");
  for (const e of form?.elements ?? []) {
    const values = kept.data.getAll(e.name);
    if (/^(checkbox|radio)$/.test(e.type)) { e.checked = values.includes(e.value); }
    else if (values.length && !/^(hidden|file|password|submit)$/.test(e.type)) { e.value = values[0]; }
  }
  kept = null;
});
