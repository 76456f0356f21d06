// What is looked at, in the address behind "#", so that every view can be linked: #view=api&backend=cuda&text=dot

const VIEWS = [...document.querySelectorAll("#views a")].map((a) => a.dataset.view);
const LISTS = [...FACETS.map((f) => f.name), "toggle"]; // may be repeated

function readState(fragment) {
  const given = new URLSearchParams(fragment.replace(/^#/, ""));
  const view = given.get("view");
  return {
    view: VIEWS.includes(view) ? view : VIEWS[0],
    text: given.get("text") ?? "",
    depth: Math.max(1, Number.parseInt(given.get("depth"), 10) || 1),
    ...Object.fromEntries(LISTS.map((name) => [name, unique(given.getAll(name))])),
    cell: given.get("cell"), // opened: a cell, or a square by its column and row
    in: given.get("in"),
    row: given.get("row"),
  };
}

function writeState(state) {
  const made = new URLSearchParams();
  const plain = { view: VIEWS[0], text: "", depth: 1 };
  for (const [name, value] of Object.entries({ ...plain, ...state })) {
    if (Array.isArray(value)) value.forEach((v) => made.append(name, v));
    else if (value !== null && value !== undefined && value !== plain[name]) made.set(name, value);
  }
  return `#${made}`;
}

const opened = (state) => state.cell !== null || state.in !== null;
const closed = (state) => ({ ...state, cell: null, in: null, row: null });
const filtered = (state) => state.text.trim() !== "" || FACETS.some((f) => state[f.name].length > 0);
const unfiltered = (state) => ({ ...state, text: "", ...Object.fromEntries(FACETS.map((f) => [f.name, []])) });
