// The table of times: figures that are stable, of the entries that pass the filters.

const MOST_TIMES = 500; // rows; more are reached by filtering
const HEADS = ["Median", "Spread", "Rate", "Against torch", "Of ceiling", "Ceiling"];

function drawTimes(state) {
  const views = Object.keys(LEVELS).map((view) => select(state, view));
  const passes = (entry) => views.some((v) => v.passes[entry]);
  const rows = index.times.filter(([entry]) => passes(entry));
  const counts = FACETS.map((f, i) => f.values.map((_, j) => views.reduce((sum, v) => sum + v.counts[i][j], 0)));
  document.getElementById("times-table").replaceChildren(rows.length ? timesTable(rows, state) : nothing(state));
  return { counts, passed: rows.length, all: index.times.length, what: "time" };
}

function timesTable(rows, state) {
  const link = linker(state);
  const made = rows.slice(0, MOST_TIMES).map(([entry, ...figures]) => {
    const cell = cellOf[entry];
    const name = [index.cases[kernelOf[cell]].name, index.dtypes[dtypeOf[cell]], index.samples[sampleOf[cell]]].join(" · ");
    const to = el("a", { href: link({ cell: cellByNumber[cell] }) }, name);
    return el("tr", {}, el("th", { scope: "row" }, to), el("td", {}, heading(index.columns[columnOf[cell]])), figures.map((f, i) => el("td", { class: i < 5 ? "n" : "" }, f)));
  });
  const head = el("thead", {}, el("tr", {}, ["Cell", "Target", ...HEADS].map((h) => el("th", { scope: "col" }, h))));
  const more = rows.length > MOST_TIMES ? el("p", {}, `The first ${MOST_TIMES} of ${grouped(rows.length)}; filter to see others.`) : null;
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Table of times" }, el("table", { class: "plain" }, head, el("tbody", {}, made)), more);
}
