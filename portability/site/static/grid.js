// The table of squares: rows that open, columns by backend, and arrow keys to walk in it.

const STEP = 40; // rows drawn at a time: more than a screen holds; the next follow when one comes near them
const grid = document.getElementById("grid");
let rest = []; // the rows still to be drawn, and how
let makeRow = null;

// A column is shown unless it is filtered out, or the filters leave nothing in it.
function shownColumns(state, tree) {
  const named = (name, value) => state[name].length === 0 || state[name].includes(value);
  const narrowed = filtered(state);
  return [...index.columns.keys()].filter((i) => {
    const column = index.columns[i];
    if (!named("backend", column.backend) || !named("target", column.target)) return false;
    return !narrowed || tree.root.squares[i] !== undefined;
  });
}

const expandable = (at, tree) => at.level < tree.levels.length && at.leaves.size > 1;
const isOpen = (at, state) => at.level < state.depth !== state.toggle.includes(at.key);

// The rows to show, in order: a row without a square left is left out, one that is open is followed by what it is made of.
function visibleRows(state, tree, columns) {
  const rows = [];
  const walk = (at) => {
    for (const child of at.children.values()) {
      if (!columns.some((i) => child.squares[i] !== undefined)) continue;
      rows.push(child);
      if (expandable(child, tree) && isOpen(child, state)) walk(child);
    }
  };
  walk(tree.root);
  return rows;
}

function drawGrid(state) {
  const tree = treeOf(state.view);
  const selection = select(state, state.view);
  fill(tree, selection.passes);
  const columns = shownColumns(state, tree);
  const rows = visibleRows(state, tree, columns);
  const body = el("tbody", {});
  const widths = el("colgroup", {}, el("col"), el("col", { span: Math.max(1, columns.length) }));
  const table = el("table", { class: "grid" }, caption(state, tree), widths, head(state, columns), body);
  table.style.setProperty("--columns", columns.length);
  const link = linker(state);
  const focus = focusedKey();
  if (state.view !== "kernels" && rows.length) body.append(totals(tree, columns, link));
  grid.replaceChildren(rows.length ? table : nothing(state));
  rest = [...rows];
  makeRow = (at) => row(at, tree, state, columns, link);
  drawMore(STEP + rows.findIndex((at) => focus?.startsWith(`${at.key}|`))); // the row in focus is one of them
  enter(focus);
  const passed = tree.root.squares.reduce((sum, square) => sum + square.cells.length, 0);
  return { counts: selection.counts, passed, all: tree.cells.length, what: "cell" };
}

function drawMore(number) {
  grid.querySelector("tbody")?.append(...rest.splice(0, number).map(makeRow));
  nearEnd.disconnect();
  if (rest.length > 0) nearEnd.observe(grid.querySelector("tbody").lastElementChild);
}

const nearEnd = new IntersectionObserver((seen) => seen.some((s) => s.isIntersecting) && drawMore(STEP), { root: grid, rootMargin: "1500px 0px" });
window.addEventListener("beforeprint", () => drawMore(Infinity));

const linker = (state) => {
  const base = writeState(closed(state));
  return (parameters) => `${base}${base === "#" ? "" : "&"}${new URLSearchParams(parameters)}`;
};

function caption(state, tree) {
  const what = { kernels: "Kernels", api: "The language", packages: "Packages" }[state.view];
  return el("caption", { class: "vh" }, `${what}: rows by ${tree.levels.join(", ")}, a column a target; a square says its evidence, how many of its cells passed, and what did not`);
}

function head(state, columns) {
  const groups = [];
  for (const i of columns) {
    const { backend } = index.columns[i];
    if (groups.at(-1)?.backend === backend) groups.at(-1).span++;
    else groups.push({ backend, span: 1 });
  }
  const link = linker(state);
  return el(
    "thead", {},
    el("tr", {}, el("td", { class: "corner", rowspan: 2 }, depthControl(state)),
      groups.map((g) => el("th", { scope: "colgroup", colspan: g.span, class: "backend" }, el("span", {}, g.backend)))),
    el("tr", {}, columns.map((i) => columnHead(i, link))),
  );
}

function columnHead(i, link) {
  const column = index.columns[i];
  const id = column.title ? el("span", { class: "id" }, column.target) : null;
  const environment = ambiguous(column) ? el("span", { class: "id" }, `in ${column.environment}`) : null;
  return el(
    "th", { scope: "col", class: i > 0 && index.columns[i - 1].backend !== column.backend ? "edge" : "" },
    el("a", { href: link({ in: columnKeys[i] }), tabindex: -1, "data-key": `|${columnKeys[i]}` }, el("span", { class: "title" }, heading(column)), id, environment),
  );
}

function depthControl(state) {
  const { levels } = treeOf(state.view);
  const names = { group: "groups", kernel: state.view === "api" ? "names" : "kernels", dtype: "dtypes", sample: "samples" };
  const options = levels.map((level, i) => el("option", { value: i + 1, selected: state.depth === i + 1 }, `by ${names[level]}`));
  return el("label", {}, hidden("Rows "), el("select", { id: "depth", "aria-label": "Rows" }, options));
}

function row(at, tree, state, columns, link) {
  const header = el("th", { scope: "row", class: `level${at.level}` }, rowLabel(at, tree, state));
  return el("tr", { class: `level${at.level}` }, header, columns.map((i) => cellOfGrid(at, i, link)));
}

function rowLabel(at, tree, state) {
  const key = `${at.key}|`;
  const summary = tree.levels[at.level - 1] === "kernel" ? index.cases[kernelOf[at.cell]].summary : "";
  const note = summary ? el("span", { class: "summary" }, summary) : null;
  if (!expandable(at, tree)) return [el("span", { class: "name", tabindex: -1, "data-key": key }, breakable(at.name), only(at)), note];
  const open = isOpen(at, state);
  return [el("button", { type: "button", class: "name", tabindex: -1, "aria-expanded": String(open), "data-key": key, "data-toggle": at.key }, breakable(at.name)), note];
}

// A row that would open into a single one says its names at once.
function only(at) {
  const [leaf] = at.leaves;
  return leaf ? el("span", { class: "only" }, ` ${leaf.key.slice(at.key.length + 1).replaceAll("/", " · ")}`) : null;
}

function cellOfGrid(at, i, link, name = "td") {
  const square = at.squares[i];
  const said = described(square, at.known[i]);
  const key = `${at.key}|${columnKeys[i]}`;
  const edge = i > 0 && index.columns[i - 1].backend !== index.columns[i].backend ? " edge" : "";
  const attributes = { class: `square ${said.kind}${said.evidence ? ` ${said.evidence} tried` : ""}${edge}` };
  if (square === undefined) return el(name, attributes, el("span", { tabindex: -1, "data-key": key }, squareContent(said)));
  const one = square.cells.length === 1;
  const to = one ? { cell: cellByNumber[cellOf[square.cells[0]]] } : { in: columnKeys[i], row: at.key };
  return el(name, attributes, el("a", { href: link(to), tabindex: -1, "data-key": key }, squareContent(said)));
}

// Over all rows: what part passed, rounded down, so that 100 % is all of them.
function totals(tree, columns, link) {
  const cells = columns.map((i) => {
    const made = cellOfGrid(tree.root, i, link);
    const square = tree.root.squares[i];
    const count = square ? square.total - square.unavailable : 0;
    const share = made.querySelector(".outcome");
    if (count && share) share.replaceChildren(`${Math.floor((100 * square.passed) / count)} %`);
    return made;
  });
  return el("tr", { class: "totals" }, el("th", { scope: "row" }, el("span", { class: "name", tabindex: -1, "data-key": "|" }, "all")), cells);
}

function nothing(state) {
  const all = el("a", { href: writeState(unfiltered(closed(state))) }, "Show everything");
  return el("p", { class: "nothing" }, "No cell passes these filters. ", all);
}

// ------------------------------------------------------------------------------------------------- keyboard

// One stop of the Tab key for the whole table; within it arrow keys, Home, End and their Ctrl forms.
const stops = (tr) => [...tr.querySelectorAll("[data-key]")];
const focusedKey = () => (grid.contains(document.activeElement) ? document.activeElement.dataset.key : null);
const byKey = (key) => (key === null || key === undefined ? null : grid.querySelector(`[data-key="${CSS.escape(key)}"]`));

function stand(at) {
  grid.querySelector('[data-key][tabindex="0"]')?.setAttribute("tabindex", "-1");
  at?.setAttribute("tabindex", "0");
}

// After a drawing: the focus stays where it was, if that is still there.
function enter(key) {
  const before = byKey(key);
  stand(before ?? grid.querySelector("tbody [data-key]"));
  before?.focus({ preventScroll: true });
}

grid.addEventListener("focusin", (event) => {
  if (event.target.dataset.key !== undefined) stand(event.target);
});

grid.addEventListener("keydown", (event) => {
  const at = event.target;
  if (at.dataset.key === undefined || event.altKey || event.metaKey || event.shiftKey) return;
  const to = target(at, event.key, event.ctrlKey);
  if (to === undefined) return;
  event.preventDefault();
  to?.focus();
});

function target(at, key, ctrl) {
  if (key === "End" && ctrl) drawMore(Infinity);
  const here = at.closest("tr");
  const across = stops(here);
  const column = across.indexOf(at) + (here.parentElement.tagName === "THEAD" ? 1 : 0); // the corner holds no stop
  const rows = [...grid.querySelectorAll("tr")].filter((tr) => stops(tr).length > 0);
  const goTo = (tr, i) => (tr ? stops(tr)[Math.max(0, Math.min(stops(tr).length - 1, tr.parentElement.tagName === "THEAD" ? i - 1 : i))] : null);
  const line = rows.indexOf(here);
  switch (key) {
    case "ArrowRight": return across[across.indexOf(at) + 1] ?? null;
    case "ArrowLeft": return across[across.indexOf(at) - 1] ?? null;
    case "ArrowDown": return goTo(rows[line + 1], column);
    case "ArrowUp": return goTo(rows[line - 1], column);
    case "PageDown": return goTo(rows[Math.min(rows.length - 1, line + 10)], column);
    case "PageUp": return goTo(rows[Math.max(0, line - 10)], column);
    case "Home": return goTo(ctrl ? rows[0] : here, ctrl ? column : 0);
    case "End": return goTo(ctrl ? rows.at(-1) : here, ctrl ? column : Infinity);
    default: return undefined;
  }
}
