// The page as a function of its address: whatever is chosen is written there, and drawn from there.

const pageTitle = document.title;
let state = readState(location.hash);
let drawn = null; // the address, without what is opened, whose view stands on the page

function draw() {
  const address = writeState(closed(state));
  if (address !== drawn) {
    drawView();
    drawn = address;
  }
  if (opened(state)) openPanel(state);
  else if (panel.open) panel.close();
}

function drawView() {
  for (const link of document.querySelectorAll("#views a")) {
    link.href = writeState({ ...closed(state), view: link.dataset.view, depth: 1, toggle: [] });
    if (link.dataset.view === state.view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  const part = state.view in LEVELS ? "matrix" : state.view;
  for (const section of document.querySelectorAll("[data-part]")) section.hidden = section.dataset.part !== part;
  document.getElementById("filters").hidden = part !== "matrix" && part !== "times";
  if (part === "matrix") showFilters(state, drawGrid(state));
  if (part === "times") showFilters(state, drawTimes(state));
}

// What is typed and ticked replaces the address; what is followed as a link makes an entry of the browser's history.
function change(what) {
  state = { ...closed(state), ...what };
  window.history.replaceState(null, "", writeState(state));
  draw();
}

window.addEventListener("hashchange", () => {
  state = readState(location.hash);
  draw();
});

panel.addEventListener("close", () => {
  document.title = pageTitle;
  if (!opened(state)) return;
  state = closed(state);
  window.history.pushState(null, "", writeState(state));
});
panel.addEventListener("click", (event) => {
  if (event.target === panel || event.target.closest("[data-close]")) panel.close(); // on it alone is the backdrop
});

grid.addEventListener("change", (event) => {
  if (event.target.id !== "depth") return;
  change({ depth: Number(event.target.value), toggle: [] });
  document.getElementById("depth").focus();
});
grid.addEventListener("click", (event) => {
  const key = event.target.closest("[data-toggle]")?.dataset.toggle;
  if (key === undefined) return;
  change({ toggle: state.toggle.includes(key) ? state.toggle.filter((k) => k !== key) : [...state.toggle, key] });
});

// ---------------------------------------------------------------------------------------------- light and dark

const theme = document.getElementById("theme");

function stored(value) {
  try {
    if (value !== undefined) localStorage.setItem("theme", value);
    return localStorage.getItem("theme") ?? "";
  } catch {
    return value ?? ""; // a page in a sandbox may store nothing: the choice lasts as long as the page
  }
}

function paint(name) {
  if (name) document.documentElement.dataset.theme = name;
  else delete document.documentElement.dataset.theme;
}

theme.value = stored();
paint(theme.value);
theme.addEventListener("change", () => paint(stored(theme.value)));

makeMenus(change);
draw();
performance.mark("ready");
