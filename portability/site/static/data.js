// The index that data.py writes, made ready to be filtered. The parts of this script (see page.py) are one module.

const index = JSON.parse(document.getElementById("index").textContent);
const [kernelOf, dtypeOf, sampleOf, columnOf] = index.cells; // of a cell
const [cellOf, evidenceOf, outcomeOf, standingOf, signOf, refusedOf, versionOf, saidOf] = index.entries; // of an entry

const PASS = index.outcomes.indexOf("pass");
const UNAVAILABLE = index.outcomes.indexOf("unavailable");
const LEVELS = { kernels: ["kernel", "dtype", "sample"], api: ["group", "kernel", "dtype", "sample"] };
LEVELS.packages = LEVELS.api;

const heading = (column) => column.title || column.target;
const ambiguous = (column) => index.columns.some((c) => c !== column && c.target === column.target);
const columnKey = (column) => (ambiguous(column) ? `${column.target}@${column.environment}` : column.target);
const columnKeys = index.columns.map(columnKey);

const DEFAULT_ENVIRONMENT = "default";

function cellId(cell) {
  const { target, environment } = index.columns[columnOf[cell]];
  const parts = [index.cases[kernelOf[cell]].name, index.dtypes[dtypeOf[cell]], index.samples[sampleOf[cell]], target];
  return (environment === DEFAULT_ENVIRONMENT ? parts : [...parts, environment]).join("-");
}

const cellByNumber = kernelOf.map((_, cell) => cellId(cell));
const cellById = new Map(cellByNumber.map((id, cell) => [id, cell]));

const entriesOf = kernelOf.map(() => []); // cell -> its entries, of several devices and versions
cellOf.forEach((cell, entry) => entriesOf[cell].push(entry));

// What may be written into the filter by text: everything that names a cell, and the first line of its error.
const haystack = cellOf.map((cell, entry) => {
  const { name, group, summary, names } = index.cases[kernelOf[cell]];
  const column = index.columns[columnOf[cell]];
  const words = [cellByNumber[cell], name, group, summary, ...names, column.title, column.backend, index.said[saidOf[entry]]];
  return words.join(" ").toLowerCase();
});

const rank = (entry) => index.evidence.length - evidenceOf[entry]; // larger is stronger
const gravity = (entry) => outcomeOf[entry] * 16 + rank(entry); // what of several entries a table shows
const graver = (a, b) => (gravity(b) > gravity(a) ? b : a);
const tried = (entry) => outcomeOf[entry] !== UNAVAILABLE;
const fails = (entry) => index.failing[standingOf[entry]];

const unique = (values) => [...new Set(values)];

// Each facet: the values that it can take, and for an entry the number of its own.
function facet(name, title, values, valueOf, label = (value) => value) {
  const number = new Map(values.map((value, i) => [value, i]));
  return { name, title, values, label, of: cellOf.map((cell, entry) => number.get(valueOf(cell, entry))) };
}

const byTarget = new Map(index.columns.map((column) => [column.target, column]));
const targetLabel = (id) => (byTarget.get(id)?.title ? `${byTarget.get(id).title} (${id})` : id);
const present = (words, numbers) => words.filter((_, i) => new Set(numbers).has(i));
const FACETS = [
  facet("backend", "Backend", unique(index.columns.map((c) => c.backend)), (cell) => index.columns[columnOf[cell]].backend),
  facet("target", "Architecture", unique(index.columns.map((c) => c.target)), (cell) => index.columns[columnOf[cell]].target, targetLabel),
  facet("dtype", "Dtype", present(index.dtypes, dtypeOf), (cell) => index.dtypes[dtypeOf[cell]]),
  facet("evidence", "Evidence", present(index.evidence, evidenceOf), (_, entry) => index.evidence[evidenceOf[entry]]),
  facet("outcome", "Outcome", present(index.outcomes, outcomeOf), (_, entry) => index.outcomes[outcomeOf[entry]]),
  facet("standing", "Standing", present(index.standings, standingOf), (_, entry) => index.standings[standingOf[entry]]),
  facet("version", "Triton", index.versions, (_, entry) => index.versions[versionOf[entry]], (value) => value || "not known"),
];

// The details: one line of JSON an entry, then one a cell. They are unpacked when the first cell is opened.
let lines = null;

async function details() {
  if (lines === null) {
    const packed = Uint8Array.from(atob(document.getElementById("details").textContent.trim()), (c) => c.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    lines = (await new Response(stream).text()).split("\n");
  }
  return {
    of: (entry) => JSON.parse(lines[entry]),
    history: (cell) => JSON.parse(lines[cellOf.length + cell] ?? "[]"),
  };
}
