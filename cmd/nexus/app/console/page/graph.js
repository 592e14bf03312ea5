// Draws a plan: steps in columns, each to the right of what it needs.
import { s, tone, ms } from "./dom.js";

const most = 120; // steps that are drawn in full; more are drawn small

// layout puts the nodes into columns, in the order of rows.
function layout(nodes) {
  const at = new Map(nodes.map((n) => [n.id, n])), level = new Map(), busy = new Set();
  const floor = {}; // the first column of each round
  const depth = (n) => {
    if (level.has(n.id)) return level.get(n.id);
    if (busy.has(n.id)) return 0; // a cycle
    busy.add(n.id);
    let d = floor[n.round] || 0;
    for (const id of n.needs) if (at.has(id)) d = Math.max(d, depth(at.get(id)) + 1);
    busy.delete(n.id);
    level.set(n.id, d);
    return d;
  };
  let last = 1, top = 0;
  for (const n of nodes) { // nodes are in the order of rounds
    if (n.round !== last) { floor[n.round] = top + 1; last = n.round; }
    top = Math.max(top, depth(n));
  }
  // An edge over several columns has a joint in each of those between, so that it passes between the steps.
  const columns = [], row = new Map(), joints = new Map();
  for (const n of nodes) (columns[level.get(n.id)] ||= []).push({ id: n.id, before: n.needs });
  for (const n of nodes) for (const id of n.needs) {
    if (!at.has(id) || nodes.length > most) continue;
    const chain = [];
    for (let x = level.get(id) + 1; x < level.get(n.id); x++) {
      const joint = { id: `${id}\n${n.id}\n${x}`, before: [chain.at(-1) ?? id], joint: true };
      columns[x].push(joint);
      chain.push(joint.id);
    }
    if (chain.length) joints.set(`${id}\n${n.id}`, chain);
  }
  for (const column of columns) {
    const means = new Map(column.map((n, i) => [n, n.before.some((id) => row.has(id)) ? n.before.reduce((a, id) => a + (row.get(id) ?? 0), 0) / n.before.length : i]));
    column.sort((a, b) => means.get(a) - means.get(b));
    column.forEach((n, i) => row.set(n.id, i));
  }
  return { columns, joints };
}

// graph returns the drawing of a plan. pick is called with the id of a step that is clicked.
export function graph(nodes, path, pick) {
  const small = nodes.length > most, w = small ? 92 : 176, high = small ? 22 : 46, gapX = small ? 44 : 52, gapY = small ? 6 : 14;
  const { columns, joints } = layout(nodes);
  const tall = columns.map((c) => c.reduce((a, n) => a + (n.joint ? 0 : high) + gapY, -gapY)), tallest = Math.max(high, ...tall);
  const place = new Map();
  columns.forEach((column, x) => {
    let y = 4 + (small ? 0 : (tallest - tall[x]) / 2);
    for (const n of column) { place.set(n.id, [4 + x * (w + gapX), y]); y += (n.joint ? 0 : high) + gapY; }
  });
  const width = columns.length * (w + gapX) - gapX + 8, height = tallest + 8;
  const critical = new Set(path), lines = { plain: "", critical: "" }, heads = { plain: "", critical: "" };
  const curve = (from, to) => {
    const [x1, y1] = place.get(from), [x2, y2] = place.get(to), d = y2 + high / 2;
    let a = x1 + w, b = y1 + high / 2, line = `M${a} ${b}`;
    const bow = (x, y) => { const bend = Math.max(18, (x - a) / 2); line += `C${a + bend} ${b} ${x - bend} ${y} ${x} ${y}`; a = x; b = y; };
    for (const joint of joints.get(`${from}\n${to}`) || []) { const [x, y] = place.get(joint); bow(x, y); line += `H${a = x + w}`; }
    bow(x2 - 5, d);
    return [line, `M${x2} ${d}l-7 -4v8z`];
  };
  for (const n of nodes) for (const id of n.needs) {
    if (!place.has(id)) continue;
    const kind = critical.has(id) && critical.has(n.id) && path.indexOf(n.id) === path.indexOf(id) + 1 ? "critical" : "plain";
    const [line, head] = curve(id, n.id);
    lines[kind] += line; heads[kind] += head;
  }
  const chosen = s("path", { class: "edge chosen" });
  const groups = small ? new Map() : new Map(nodes.map((n) => [n.id, box(n, place.get(n.id), w, high, critical.has(n.id))]));
  const around = s("rect", { class: "around", width: w + 4, height: high + 4, rx: 6, visibility: "hidden" });
  const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, width, height, role: "img", class: small ? "graph small" : "graph",
    "aria-label": `The plan as a graph of ${nodes.length} steps; the table below has the same data` },
  s("path", { class: "edge", d: lines.plain }), s("path", { class: "head", d: heads.plain }), s("path", { class: "edge critical", d: lines.critical }), s("path", { class: "head critical", d: heads.critical }), chosen, small ? boxes(nodes, place, w, high) : [...groups.values()], small && around);
  svg.addEventListener("click", (e) => {
    const x = e.offsetX, y = e.offsetY, hit = (n) => { const [a, b] = place.get(n.id); return x >= a && x <= a + w && y >= b && y <= b + high; };
    const step = e.target.closest("[data-step]")?.dataset.step || nodes.find(hit)?.id;
    if (step) pick(step);
  });
  return { svg, select(id) {
    for (const [k, g] of groups) g.classList.toggle("selected", k === id);
    let d = "";
    for (const n of nodes) for (const need of n.needs) if ((n.id === id || need === id) && place.has(need)) d += curve(need, n.id)[0];
    chosen.setAttribute("d", d);
    const p = place.get(id), view = svg.parentElement;
    if (p) { around.setAttribute("x", p[0] - 2); around.setAttribute("y", p[1] - 2); around.setAttribute("visibility", "visible"); }
    if (p && view) view.scrollTo({ left: p[0] - view.clientWidth / 2 + w / 2, top: p[1] - view.clientHeight / 2 });
  } };
}

const cut = (text, n) => text.length > n ? text.slice(0, n - 1) + "…" : text;
const sign = { ok: "✓", partly: "!", failed: "✕", skipped: "↷", not_run: "–" };

// boxes draws many steps with few elements: a path for each state, and the labels.
function boxes(nodes, place, w, high) {
  const shapes = {};
  const labels = nodes.map((n) => {
    const [x, y] = place.get(n.id);
    shapes[n.state] = (shapes[n.state] || "") + `M${x} ${y}h${w}v${high}h${-w}z`;
    return s("text", { x: x + 7, y: y + 15, "data-step": n.id }, cut(`${sign[n.state]} ${n.id} ${n.tool}`, 14));
  });
  return [Object.entries(shapes).map(([state, d]) => s("g", { class: `node ${tone(state)} ${state}` }, s("path", { class: "body", d }))), labels];
}

function box(n, [x, y], w, high, critical) {
  const label = n.loop ? `×${n.calls}` : "";
  return s("g", { class: `node ${tone(n.state)} ${n.state} ${critical ? "critical" : ""}`, "data-step": n.id, transform: `translate(${x} ${y})` },
    s("title", {}, `${n.id}: ${n.tool} of ${n.server || "no server"}, ${n.carries ? `with data of ${n.carries.join(", ")}, ` : ""}${n.state.replace("_", " ")}${n.reason ? " (" + n.reason + ")" : ""}, ${ms(n.duration_ms)}`),
    n.loop && s("rect", { class: "stack", x: 4, y: 4, width: w, height: high, rx: 6 }),
    s("rect", { class: "body", width: w, height: high, rx: 6 }),
    s("text", { x: 10, y: 19, class: "tool" }, cut(n.tool, label ? 16 : 20)), label && s("text", { x: w - 9, y: 19, "text-anchor": "end" }, label),
    s("text", { x: 10, y: 36, class: "sub" }, `${sign[n.state]} ${cut(n.id, 10)}${n.conditional ? " · if" : ""}${n.shaped ? " · shaped" : ""}`),
    s("text", { x: w - 9, y: 36, "text-anchor": "end", class: "sub" }, n.calls && n.state !== "skipped" ? ms(n.duration_ms) : n.state.replace("_", " ")));
}
