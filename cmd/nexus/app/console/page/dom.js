// Makes elements. Everything that servers, models and clients wrote becomes text, never markup.

const SVG = "http://www.w3.org/2000/svg";

function fill(element, props, children) {
  for (const [name, value] of Object.entries(props || {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  add(element, children);
  return element;
}

function add(element, children) {
  for (const c of children) {
    if (Array.isArray(c)) add(element, c);
    else if (c !== null && c !== undefined && c !== false && c !== "") element.append(typeof c === "string" ? visible(c) : c);
  }
}

// visible shows control characters, and those that change the direction of the text around, as one that does nothing.
const visible = (text) => text.replace(/[\0-\x08\v\f\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g, "\ufffd");

// put replaces what an element has.
export function put(element, ...children) {
  element.replaceChildren();
  add(element, children);
}

// renew does the same and keeps the nodes that are equal, so that a click under way, a selection and a scrolled table
// survive. The focus stays on what it was on, if that is there again. A kept node has its old listeners.
export function renew(element, ...children) {
  const old = element.contains(document.activeElement) && document.activeElement, fresh = element.cloneNode(false);
  add(fresh, children);
  match(element, fresh);
  if (!old || old.isConnected) return;
  const same = (x) => x.id === old.id && x.getAttribute("href") === old.getAttribute("href") && x.textContent === old.textContent;
  [...element.querySelectorAll(old.tagName)].find(same)?.focus({ preventScroll: true });
}

function match(old, fresh) {
  const had = [...old.childNodes], has = [...fresh.childNodes];
  has.forEach((node, i) => {
    const was = had[i];
    if (!was) old.append(node);
    else if (was.isEqualNode(node)) return;
    else if (was.nodeType === Node.ELEMENT_NODE && was.cloneNode(false).isEqualNode(node.cloneNode(false))) match(was, node);
    else was.replaceWith(node);
  });
  for (const node of had.slice(has.length)) node.remove();
}

// h makes an HTML element, s one of SVG.
export const h = (tag, props, ...children) => fill(document.createElement(tag), props, children);
export const s = (tag, props, ...children) => fill(document.createElementNS(SVG, tag), props, children);

// ms shows milliseconds in a fitting unit.
export function ms(t) {
  if (t === undefined || t === null) return "–";
  if (t < 1) return `${t.toFixed(2)} ms`;
  if (t < 1000) return `${t.toFixed(t < 10 ? 1 : 0)} ms`;
  return t < 60e3 ? `${(t / 1000).toFixed(t < 10e3 ? 2 : 1)} s` : `${Math.floor(t / 60e3)} min ${Math.round((t % 60e3) / 1000)} s`;
}

// span shows seconds in one unit.
export function span(sec) {
  if (sec < 120) return `${Math.max(0, Math.round(sec))} s`;
  if (sec < 7200) return `${Math.round(sec / 60)} min`;
  return sec < 172800 ? `${Math.round(sec / 3600)} h` : `${Math.round(sec / 86400)} d`;
}

export const ago = (at) => span((Date.now() - Date.parse(at)) / 1000) + " ago";

// clock shows a moment: the time today, else with the date.
export function clock(at) {
  const d = new Date(at), today = d.toDateString() === new Date().toDateString();
  return d.toLocaleString(undefined, today ? { timeStyle: "medium" } : { dateStyle: "short", timeStyle: "medium" });
}

export const when = (at) => h("time", { datetime: at, title: new Date(at).toLocaleString() }, clock(at));

export const count = (n, one, many = one + "s") => `${n.toLocaleString()} ${n === 1 ? one : many}`;

export const bytes = (n) => n < 1024 ? `${n} B` : n < 1 << 20 ? `${(n / 1024).toFixed(1)} KiB` : `${(n / (1 << 20)).toFixed(1)} MiB`;

// caller shows who: a key by its name.
export const caller = (id) => (id || "").replace(/^key:/, "").replace(/^addr:/, "") || "the router";

// Tones of states and outcomes. A mark of its own goes with each, so that color is never all there is.
const tones = {
  __proto__: null, ok: "good", connected: "good", healthy: "good",
  degraded: "warn", connecting: "warn", partly: "warn", warn: "warn", cancelled: "calm", refused: "warn", unknown: "calm",
  disabled: "calm", skipped: "calm", not_run: "calm", allow: "good", ask: "warn",
};
const marks = { good: "✓", warn: "!", bad: "✕", calm: "–" };
export const tone = (state) => tones[state] || "bad";
export const words = (state) => String(state).replaceAll("_", " ");

export const badge = (state, text) => h("span", { class: `badge ${tone(state)}` },
  h("span", { "aria-hidden": "true" }, marks[tone(state)] + " "), text || words(state));

// empty says that there is nothing, and what to do next.
export const empty = (title, ...next) => h("div", { class: "empty" }, h("p", {}, h("strong", {}, title)), h("p", {}, ...next));

// section is a part of a view with a heading.
export const section = (id, title, ...parts) => h("section", { "aria-labelledby": id }, h("h2", { id }, title), parts);

// labelled is an input of a form with its label and what there is to know about it.
export const labelled = (id, label, input, about) => h("div", { class: "field" }, h("label", { for: id }, label), input, about && h("p", { class: "muted", id: id + "-about" }, about));

export const options = (list, chosen) => list.map(([value, text]) => h("option", { value, selected: value === chosen }, text));

export const muted = (...parts) => h("p", { class: "muted" }, parts);
export const wrong = (text) => h("p", { class: "problem", role: "alert" }, text);

export const code = (text) => h("code", {}, text);

// pretty shows JSON; a string is shown as its text.
export function pretty(value) {
  if (value === undefined || value === null) return "";
  return typeof value === "string" ? value : JSON.stringify(value, null, 2);
}

export const block = (value, label) => h("pre", { tabindex: "0", role: "region", "aria-label": label }, pretty(value));

// facts is a list of names and values, and true where a value needs more room.
export const facts = (...pairs) => h("dl", { class: "facts" },
  pairs.filter((p) => p && p[1] !== undefined && p[1] !== null && p[1] !== "").map(([k, v, wide]) => h("div", { class: wide && "wide" }, h("dt", {}, k), h("dd", {}, v))));

// table makes a table whose rows become cards on narrow screens. A head that begins with "#" is a column of numbers.
export function table(label, heads, rows) {
  const names = heads.map((x) => x.replace(/^#/, ""));
  return h("div", { class: "scroll" }, h("table", { class: "list" }, h("caption", { class: "hidden" }, label),
    h("thead", {}, h("tr", {}, heads.map((x, i) => h("th", { scope: "col", class: x[0] === "#" && "n" }, names[i] || h("span", { class: "hidden" }, "Action"))))),
    h("tbody", {}, rows.map((cells) => h("tr", {}, cells.map((c, i) => h(i ? "td" : "th", { scope: i ? undefined : "row", class: heads[i][0] === "#" && "n", "data-head": names[i] }, c)))))));
}

// say tells screen readers.
export function say(text) {
  document.getElementById("say").textContent = text;
}
