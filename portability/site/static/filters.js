// The filters: one box for text, a menu a facet, and what is chosen as removable chips.

const textBox = document.getElementById("text");
const menus = document.getElementById("menus");
const chips = document.getElementById("chips");
const count = document.getElementById("count");

const evidenceFacet = FACETS.find((f) => f.name === "evidence");
const strip = [...document.querySelectorAll("#strip button")]; // what each kind of evidence means, and its filter

// A facet of which there is only one value has nothing to choose.
const offered = FACETS.filter((f) => f !== evidenceFacet && f.values.length > 1);

function makeMenus(change) {
  for (const f of offered) {
    const options = f.values.map((value) => {
      const box = el("input", { type: "checkbox", value, name: f.name });
      return el("label", {}, box, el("span", {}, f.label(value)), el("span", { class: "n" }));
    });
    const choices = el("fieldset", {}, el("legend", { class: "vh" }, f.title), options);
    const menu = el("details", { class: "menu", "data-facet": f.name }, el("summary", {}, f.title, el("span", { class: "chosen" })), choices);
    menu.addEventListener("change", (event) => {
      const others = state[f.name].filter((v) => v !== event.target.value);
      change({ [f.name]: event.target.checked ? [...others, event.target.value] : others });
    });
    menus.append(menu);
  }
  for (const button of strip) {
    const word = button.dataset.evidence;
    button.addEventListener("click", () => {
      const others = state.evidence.filter((v) => v !== word);
      change({ evidence: state.evidence.includes(word) ? others : [...others, word] });
    });
  }
  textBox.addEventListener("input", () => change({ text: textBox.value }));
}

function showFilters(state, { counts, passed, all, what }) {
  if (textBox.value !== state.text) textBox.value = state.text;
  for (const f of offered) {
    const menu = menus.querySelector(`[data-facet="${f.name}"]`);
    menu.querySelector(".chosen").textContent = state[f.name].length ? ` (${state[f.name].length})` : "";
    menu.querySelectorAll("label").forEach((label, i) => {
      label.querySelector("input").checked = state[f.name].includes(f.values[i]);
      const n = counts[FACETS.indexOf(f)][i];
      label.querySelector(".n").textContent = grouped(n);
      label.classList.toggle("empty", n === 0);
    });
  }
  for (const button of strip) {
    const n = counts[FACETS.indexOf(evidenceFacet)][evidenceFacet.values.indexOf(button.dataset.evidence)] ?? 0;
    button.setAttribute("aria-pressed", String(state.evidence.includes(button.dataset.evidence)));
    button.querySelector(".n").textContent = grouped(n);
    button.classList.toggle("empty", n === 0);
  }
  chips.replaceChildren(...chosenChips(state));
  count.textContent = passed === all ? plural(all, what) : `${grouped(passed)} of ${plural(all, what)}`;
}

function chosenChips(state) {
  const made = FACETS.flatMap((f) =>
    state[f.name].map((value) => {
      const without = { ...closed(state), [f.name]: state[f.name].filter((v) => v !== value) };
      return el("a", { class: "chip", href: writeState(without) }, `${f.title}: ${f.label(value)}`, el("span", { "aria-hidden": "true" }, " ×"), hidden(" (remove)"));
    }),
  );
  if (filtered(state)) made.push(el("a", { class: "chip reset", href: writeState(unfiltered(closed(state))) }, "Reset"));
  return made;
}

// A menu closes as any other does: by Escape, and when one clicks elsewhere.
document.addEventListener("keydown", (event) => {
  const menu = document.activeElement?.closest("details.menu[open]");
  if (event.key === "Escape" && menu) {
    menu.open = false;
    menu.querySelector("summary").focus();
  }
  if (event.key === "/" && !event.target.closest("input, select, textarea, dialog")) {
    event.preventDefault();
    textBox.focus();
  }
});
document.addEventListener("click", (event) => {
  for (const menu of document.querySelectorAll("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false;
});
