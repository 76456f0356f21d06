// Elements from text: nothing of a results file is ever read as HTML.

function el(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === true) made.setAttribute(key, "");
    else if (value !== false && value !== null && value !== undefined) made.setAttribute(key, value);
  }
  made.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== ""));
  return made;
}

const hidden = (text) => el("span", { class: "vh" }, text);
const ball = (evidence) => el("i", { class: `ball ${evidence}`, "aria-hidden": "true" });

// A word that may be broken after its underscores.
const breakable = (word) => word.split(/(?<=_)/).flatMap((part, i) => (i ? [el("wbr"), part] : [part]));

// A square's inside: the evidence, then count and marks. The style adds the shape of the one and the sign of the other.
function squareContent(said) {
  if (said.kind === "hidden") return [hidden(said.text)];
  if (!said.evidence) return [said.text];
  return [said.evidence, " ", el("span", { class: "outcome" }, said.count, said.marks.map((m) => [" ", el("b", {}, breakable(m))]))];
}

// A bar says again what the words beside it say.
function bar(fraction, over = fraction > 1) {
  const inner = el("span", { class: over ? "over" : "" });
  inner.style.inlineSize = `${Math.max(0, Math.min(1, fraction)) * 100}%`;
  return el("span", { class: "bar", "aria-hidden": "true" }, inner);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = (value) => (isNumber(value) ? value.toLocaleString("en-US") : String(value));
const plural = (number, what) => `${grouped(number)} ${number === 1 ? what : `${what}s`}`;
const short = (value) => (isNumber(value) ? String(Number(value.toPrecision(3))) : String(value));
const percent = (fraction) => (isNumber(fraction) ? `${Math.round(fraction * 100)} %` : String(fraction));

function duration(milliseconds) {
  if (!isNumber(milliseconds)) return String(milliseconds);
  const [unit, factor] = [["s", 1e-3], ["ms", 1], ["µs", 1e3]].find(([name, f]) => milliseconds * f >= 1 || name === "µs");
  return `${short(milliseconds * factor)} ${unit}`;
}

// A link of a results file leads only to a page, and tells it nothing.
function outside(address) {
  const safe = /^https?:\/\//i.test(address);
  return safe ? el("a", { href: address, rel: "noopener noreferrer nofollow" }, address) : el("span", {}, address);
}
