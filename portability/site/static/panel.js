// What a square opens: the cells that it is made of, or one cell with all that is known of it.

const panel = document.getElementById("panel");
const panelBody = document.getElementById("panel-body");
const MOST_CELLS = 400; // of a square that are listed

const section = (title, ...content) => (content.flat(Infinity).some(Boolean) ? el("section", {}, el("h3", {}, title), content) : null);
const facts = (pairs) => {
  const shown = pairs.filter(([, value]) => value !== null && value !== undefined && value !== "" && value !== false);
  return shown.length ? el("dl", {}, shown.map(([term, value]) => [el("dt", {}, term), el("dd", {}, value)])) : null;
};
const scrolling = (label, table) => el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": label }, table);

function kindOf(entry) {
  const square = emptySquare();
  addTo(square, entry);
  return described(square, true);
}

// The words of one entry, as in the table but without "1/1".
function badge(entry) {
  const said = kindOf(entry);
  const outcome = index.outcomes[outcomeOf[entry]];
  if (!tried(entry)) return el("span", { class: `badge square ${said.kind}` }, outcome);
  const evidence = index.evidence[evidenceOf[entry]];
  return el("span", { class: `badge square tried ${said.kind} ${evidence}` }, `${evidence} `, el("span", { class: "outcome" }, outcome, index.signs[signOf[entry]]));
}

async function openPanel(asked) {
  const content = asked.cell === null ? squarePanel(asked) : await cellPanel(asked);
  if (asked !== state) return; // by now something else is looked at
  panelBody.replaceChildren(...[content ?? missing(asked)].flat(Infinity).filter(Boolean));
  document.title = `${panelBody.querySelector("h2").textContent} – ${pageTitle}`;
  if (!panel.open) panel.showModal();
  panel.scrollTop = 0;
  panelBody.querySelector("h2").focus({ preventScroll: true });
}

const title = (text, small) => el("h2", { tabindex: -1 }, text, small ? el("small", {}, " ", small) : null);
const missing = (state) => [title("Not in these results"), el("p", {}, `${state.cell ?? state.in}: no such cell or column is here.`)];

// --------------------------------------------------------------------------------------------------- a square

function squarePanel(state) {
  const column = columnKeys.indexOf(state.in);
  const tree = treeOf(state.view);
  if (column < 0 || !tree) return null;
  const at = state.row === null ? tree.root : find(tree.root, state.row);
  const cells = at ? tree.cells.filter((cell) => columnOf[cell] === column && within(tree.leafOf.get(cell), at)) : [];
  const { target, why, remedy, versions, evidence } = index.columns[column];
  const about = facts([
    ["Target", target],
    ["Reaches here", el("span", {}, ball(evidence ?? "none"), evidence ?? "none")],
    ["Why no more", why],
    ["What gives more", remedy && el("code", {}, remedy)],
    ["Versions", Object.entries(versions).map(([n, v]) => `${n} ${v}`).join(", ")],
  ]);
  const name = at && at !== tree.root ? at.key.replaceAll("/", " · ") : "";
  return [title(name || heading(index.columns[column]), name ? `on ${heading(index.columns[column])}` : ""), about, cellList(cells, state)];
}

function find(root, key) {
  let found = null;
  const walk = (at) => (at.key === key ? (found = at) : at.children.forEach(walk));
  walk(root);
  return found;
}

const within = (leaf, at) => leaf === at || leaf.parent === at || (leaf.parent !== null && within(leaf.parent, at));

function cellList(cells, state) {
  const link = linker(state);
  const worst = cells.map((cell) => entriesOf[cell].reduce(graver));
  worst.sort((a, b) => signOf[b] - signOf[a] || gravity(b) - gravity(a));
  const items = worst.slice(0, MOST_CELLS).map((entry) => {
    const cell = cellOf[entry];
    const name = [index.cases[kernelOf[cell]].name, index.dtypes[dtypeOf[cell]], index.samples[sampleOf[cell]]].join(" · ");
    const said = index.said[saidOf[entry]];
    return el("li", {}, el("a", { href: link({ cell: cellByNumber[cell] }) }, name), badge(entry), said ? el("span", { class: "said" }, said) : null);
  });
  const more = cells.length > MOST_CELLS ? el("p", {}, `… and ${grouped(cells.length - MOST_CELLS)} more.`) : null;
  return section(plural(cells.length, "cell"), el("ul", { class: "cells" }, items), more);
}

// ----------------------------------------------------------------------------------------------------- a cell

async function cellPanel(state) {
  const cell = cellById.get(state.cell);
  if (cell === undefined) return null;
  const known = await details();
  const entries = [...entriesOf[cell]].sort((a, b) => gravity(b) - gravity(a));
  const { name, summary, file } = index.cases[kernelOf[cell]];
  const column = index.columns[columnOf[cell]];
  const parts = [index.dtypes[dtypeOf[cell]], index.samples[sampleOf[cell]]].join(" · ");
  return [
    title(name, `${parts} on ${heading(column)}`),
    summary || file ? el("p", { class: "about" }, summary, " ", file ? el("code", {}, file) : null) : null,
    entries.map((entry) => observed(entry, known.of(entry), entries.length > 1)),
    again(cell),
    elsewhere(cell, state),
    historyOf(known.history(cell)),
    el("p", { class: "id" }, el("code", {}, state.cell)),
  ];
}

function observed(entry, { seen, why, rule, run }, several) {
  const origin = several ? el("h3", {}, [seen.device, `Triton ${seen.versions?.triton ?? "?"}`, seen.when].filter(Boolean).join(", ")) : null;
  return el(
    "article", {}, origin,
    el("p", { class: "verdict" }, badge(entry), " ", el("span", {}, why)),
    declared(rule),
    section("Error", wrong(seen)),
    section("Accuracy", accuracy(seen.accuracy)),
    section("Time", time(seen.timing)),
    section("Resources", resources(seen.resources ?? [])),
    section("Blocks", blocks(seen)),
    section("Warnings", warnings(seen.warnings ?? [])),
    section("Where and when", provenance(seen, index.runs[run])),
  );
}

function declared(number) {
  const rule = index.rules[number];
  if (!rule) return null;
  return section("Declared", el("p", {}, rule.reason), facts([
    ["Outcome", rule.outcome.join(" or ")],
    ["In", el("code", {}, rule.place)],
    ["Message holds", rule.match && el("code", {}, rule.match)],
    ["Triton", rule.triton],
    ["Expires", rule.expires],
    ["Link", rule.link && outside(rule.link)],
  ]));
}

function wrong(seen) {
  if (!seen.detail && !seen.line) return null;
  return [
    facts([["Stage", seen.stage], ["Line", seen.line && el("code", {}, seen.line)]]),
    seen.detail ? el("pre", { tabindex: 0, role: "region", "aria-label": "Message" }, seen.detail) : null,
  ];
}

function accuracy(a) {
  if (!a) return null;
  const text = `largest error ${short(a.error)}, ${short(a.tolerance)} allowed there; ${short(a.ratio)} of what is allowed at the worst element`;
  return el("p", {}, text, isNumber(a.ratio) ? bar(a.ratio) : null);
}

function time(t) {
  if (!t) return null;
  if (t.performance === false) return el("p", {}, `${duration(t.median)}, which is no measure of performance`);
  const scale = t.p80 * 1.15;
  const track = el("span", { class: "quantiles", "aria-hidden": "true" }, el("span"), el("i"));
  track.firstChild.style.insetInlineStart = percent(t.p20 / scale).replace(" ", "");
  track.firstChild.style.inlineSize = `${(100 * (t.p80 - t.p20)) / scale}%`;
  track.lastChild.style.insetInlineStart = `${(100 * t.median) / scale}%`;
  return [
    el("p", {}, `${duration(t.median)} (20 % in ${duration(t.p20)}, 80 % in ${duration(t.p80)})${t.stable ? "" : ", unstable: no figure"}`, track),
    facts([
      ["Rate", t.stable && [t.gbps && `${grouped(Math.round(t.gbps))} GB/s`, t.tflops && `${short(t.tflops)} TFLOP/s`].filter(Boolean).join(", ")],
      ["Of the ceiling", t.stable && isNumber(t.ceiling) && el("span", {}, `${percent(t.ceiling)} of ${t.ceiling_of}`, bar(t.ceiling, false))],
      ["torch", isNumber(t.torch_median) && `${duration(t.torch_median)}${t.stable ? `: ${(t.torch_median / t.median).toFixed(2)}× the speed of torch` : ""}`],
      ["Measured", `${t.repetitions} × ${t.method}, warmed up ${short(t.warmup_ms)} ms`],
      ["A plain launch", isNumber(t.launch_median) && duration(t.launch_median)],
    ]),
  ];
}

const against = (used, limit, unit) =>
  used === undefined || used === null ? null
  : isNumber(limit) && limit > 0 ? el("span", {}, `${grouped(used)} of ${grouped(limit)} ${unit} (${percent(used / limit)})`, bar(used / limit))
  : `${grouped(used)} ${unit}`;

function resources(list) {
  return list.map((r) => el("div", { class: "binary" }, el("h4", {}, r.kernel, r.config ? el("small", {}, ` ${r.config}`) : null), facts([
    ["Matrix instruction", r.matrix && el("code", {}, r.matrix)],
    ["Shared memory", against(r.shared, r.shared_limit, "B")],
    ["Threads", against(r.threads, r.threads_limit, "a program")],
    ["Registers", against(r.registers, null, "a thread")],
    ["Spilled", against(r.spills, null, "B")],
    ["Stack", against(r.stack, null, "B")],
    ["Tensor memory", against(r.tensor_memory, null, "columns")],
    ...Object.entries(r.buffers ?? {}).map(([name, size]) => [name, against(size, null, "B")]),
    ["Occupancy", isNumber(r.occupancy) && el("span", {}, `${percent(r.occupancy)}${r.occupancy_limit ? `, bounded by ${r.occupancy_limit}` : ""}`, bar(r.occupancy, false))],
    ["Hash", r.hash && el("code", {}, r.hash.slice(0, 16))],
  ])));
}

function blocks(seen) {
  const pairs = Object.entries(seen.blocks ?? {});
  if (!pairs.length) return null;
  return el("p", {}, el("code", {}, pairs.map(([k, v]) => `${k}=${v}`).join(", ")), seen.blocks_from ? ` from ${seen.blocks_from}` : "");
}

const warnings = (list) => list.map((w) => el("p", {}, el("b", {}, w.code), ` ${w.message}`, w.line ? el("code", {}, ` ${w.line}`) : null, w.targets?.length ? ` (${w.targets.join(", ")})` : ""));

function provenance(seen, run) {
  return facts([
    ["Run", [run.label, run.started].filter(Boolean).join(", ") + (run.interrupted ? ", interrupted" : "")],
    ["Machine", [run.os, seen.device, run.driver && `driver ${run.driver}`].filter(Boolean).join(", ")],
    ["Versions", Object.entries(seen.versions ?? {}).map(([n, v]) => `${n} ${v}`).join(", ")],
    ["Commit", run.commit && el("code", {}, run.commit)],
    ["Knobs", Object.entries(run.knobs ?? {}).map(([n, v]) => `${n}=${v}`).join(", ")],
    ["Launches", seen.launches && `${grouped(seen.launches)}${seen.binaries ? `, of ${seen.binaries === 1 ? "1 binary" : `${grouped(seen.binaries)} binaries`}` : ""}`],
    ["Took", isNumber(seen.seconds) && `${short(seen.seconds)} s${isNumber(seen.compile_seconds) ? `, ${short(seen.compile_seconds)} s of it compiling` : ""}`],
    ["When", seen.when],
  ]);
}

// ------------------------------------------------------------------------------------------------ what is near

const quoted = (text) => `'${text.replaceAll("'", `'\\''`)}'`;

function again(cell) {
  const column = index.columns[columnOf[cell]];
  const command = `pytest tests/test_matrix.py --full --in-process --target ${quoted(column.target)} -k ${quoted(cellByNumber[cell])}`;
  const copy = el("button", { type: "button", class: "copy", hidden: !navigator.clipboard }, "Copy");
  copy.addEventListener("click", async () => {
    await navigator.clipboard.writeText(command);
    copy.textContent = "Copied";
  });
  return section("To see it again", el("div", { class: "command" }, el("pre", { tabindex: 0, role: "region", "aria-label": "Command" }, command), copy));
}

function elsewhere(cell, state) {
  const link = linker(state);
  const alike = [...kernelOf.keys()].filter((c) => c !== cell && kernelOf[c] === kernelOf[cell]);
  const targets = alike.filter((c) => dtypeOf[c] === dtypeOf[cell] && sampleOf[c] === sampleOf[cell]);
  const others = alike.filter((c) => columnOf[c] === columnOf[cell]);
  const item = (c, name) => el("li", {}, el("a", { href: link({ cell: cellByNumber[c] }) }, name), badge(entriesOf[c].reduce(graver)));
  return [
    section("The same elsewhere", targets.length ? el("ul", { class: "cells" }, targets.map((c) => item(c, heading(index.columns[columnOf[c]])))) : null),
    section("Other inputs here", others.length ? el("ul", { class: "cells" }, others.slice(0, MOST_CELLS).map((c) => item(c, `${index.dtypes[dtypeOf[c]]} · ${index.samples[sampleOf[c]]}`))) : null),
  ];
}

function historyOf(records) {
  if (records.length < 2) return null;
  const rows = records.toReversed().map(([run, when, evidence, outcome, version, device, median]) =>
    el("tr", {}, [when.slice(0, 16).replace("T", " "), index.runs[run].label, version, device, evidence, outcome, median === null ? "" : duration(median)].map((v) => el("td", {}, v))));
  const head = el("tr", {}, ["When", "Run", "Triton", "Device", "Evidence", "Outcome", "Median"].map((h) => el("th", { scope: "col" }, h)));
  return section("History", scrolling("History", el("table", { class: "plain" }, el("thead", {}, head), el("tbody", {}, rows))));
}
