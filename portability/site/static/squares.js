// Entries -> squares: what `portability.table` says of rows and columns, for those entries that pass the filters.

// Which entries pass, and for each facet how many there are of each value when the other filters alone hold.
function select(state, view) {
  const words = state.text.toLowerCase().split(/\s+/).filter(Boolean);
  const wanted = FACETS.map((f) => (state[f.name].length ? f.values.map((v) => state[f.name].includes(v)) : null));
  const counts = FACETS.map((f) => new Array(f.values.length).fill(0));
  const passes = new Uint8Array(cellOf.length);
  for (let entry = 0; entry < cellOf.length; entry++) {
    if (index.cases[kernelOf[cellOf[entry]]].view !== view) continue;
    if (!words.every((word) => haystack[entry].includes(word))) continue;
    let misses = 0;
    let missed = -1;
    for (let i = 0; i < FACETS.length && misses < 2; i++) {
      if (wanted[i] !== null && !wanted[i][FACETS[i].of[entry]]) {
        misses++;
        missed = i;
      }
    }
    if (misses === 0) {
      passes[entry] = 1;
      for (let i = 0; i < FACETS.length; i++) counts[i][FACETS[i].of[entry]]++;
    } else if (misses === 1) counts[missed][FACETS[missed].of[entry]]++;
  }
  return { passes, counts };
}

const nameAt = {
  group: (cell) => index.cases[kernelOf[cell]].group,
  kernel: (cell) => index.cases[kernelOf[cell]].name,
  dtype: (cell) => index.dtypes[dtypeOf[cell]],
  sample: (cell) => index.samples[sampleOf[cell]],
};

const node = (key, name, level, parent, cell) => ({
  key, name, level, parent, cell, children: new Map(), known: [], squares: [], leaves: new Set(),
});

// The rows of a view, as a tree: kernel > dtype > sample. Made once a view; `known` marks the columns that have a cell.
function buildTree(view) {
  const levels = LEVELS[view];
  const root = node("", "", 0, null, -1);
  const leafOf = new Map();
  const order = (a, b) => kernelOf[a] - kernelOf[b] || dtypeOf[a] - dtypeOf[b] || sampleOf[a] - sampleOf[b];
  const cells = [...kernelOf.keys()].filter((cell) => index.cases[kernelOf[cell]].view === view).sort(order);
  for (const cell of cells) {
    let at = root;
    at.known[columnOf[cell]] = true;
    for (const level of levels) {
      const name = nameAt[level](cell);
      const key = at === root ? name : `${at.key}/${name}`;
      if (!at.children.has(name)) at.children.set(name, node(key, name, at.level + 1, at, cell));
      at = at.children.get(name);
      at.known[columnOf[cell]] = true;
    }
    leafOf.set(cell, at);
    for (let up = at.parent; up !== null; up = up.parent) up.leaves.add(at);
  }
  return { root, leafOf, cells, levels };
}

const trees = {};
const treeOf = (view) => (trees[view] ??= buildTree(view));

function emptySquare() {
  return { cells: [], total: 0, passed: 0, refused: 0, unavailable: 0, weakest: -1, signs: [] };
}

function addTo(square, entry) {
  square.cells.push(entry);
  if (refusedOf[entry]) {
    square.refused++;
    return;
  }
  square.total++;
  if (outcomeOf[entry] === PASS) square.passed++;
  if (tried(entry)) square.weakest = Math.max(square.weakest, evidenceOf[entry]);
  else square.unavailable++;
  const sign = signOf[entry];
  if (sign || outcomeOf[entry] !== PASS) {
    square.signs[sign] = square.signs[sign] === undefined ? entry : graver(entry, square.signs[sign]);
  }
}

// Fill the squares of a tree with the entries that pass; of a cell's several entries the gravest is shown.
function fill(tree, passes) {
  const clear = (at) => {
    at.squares = [];
    at.children.forEach(clear);
  };
  clear(tree.root);
  for (const cell of tree.cells) {
    const entries = entriesOf[cell].filter((entry) => passes[entry]);
    if (entries.length === 0) continue;
    const entry = entries.reduce(graver);
    for (let at = tree.leafOf.get(cell); at !== null; at = at.parent) {
      addTo((at.squares[columnOf[cell]] ??= emptySquare()), entry);
    }
  }
}

// A pass that carries a sign says why: it is stale, or could not be decided.
function word(entry) {
  if (outcomeOf[entry] !== PASS) return index.outcomes[outcomeOf[entry]];
  return fails(entry) ? index.standings[standingOf[entry]] : "";
}

// The gravest first; a square has at most one of each sign.
const marks = (square) => [3, 2, 1, 0].filter((sign) => sign in square.signs).map((sign) => word(square.signs[sign]) + index.signs[sign]);

// What a square says: its kind (which colours it), evidence, count and marks.
function described(square, known) {
  if (square === undefined) return { kind: known ? "hidden" : "not-run", text: known ? "filtered" : "not run" };
  if (square.total === 0) return { kind: "na", text: "n/a" };
  if (square.unavailable === square.total) return { kind: "unavailable", text: "unavailable" };
  const gravest = square.signs.length - 1; // also -1: nothing to say
  const kind = gravest < 1 ? (square.passed === square.total ? "pass" : "partly") : ["", "unknown", "declared", "fail"][gravest];
  return {
    kind,
    evidence: index.evidence[square.weakest],
    count: `${square.passed}/${square.total}`,
    marks: marks(square),
    get text() {
      return [this.evidence, this.count, ...this.marks].join(" ");
    },
  };
}
