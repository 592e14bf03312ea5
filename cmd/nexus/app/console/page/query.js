// One query: its answer, its plan as it ran, and each of its steps.
import { h, badge, block, bytes, caller, code, count, empty, facts, ms, muted, put, section, table, tone, when, words } from "./dom.js";
import { get } from "./net.js";
import { markdown } from "./markdown.js";
import { named } from "./values.js";
import { graph } from "./graph.js";

export async function query({ main, path }) {
  const [id] = path, { entry, detail, missing } = await get(`queries/${encodeURIComponent(id)}`);
  const crumbs = h("p", { class: "crumbs" }, h("a", { href: "#/queries" }, "Queries and calls"));
  if (entry.kind === "call" || !detail) {
    put(main, crumbs, ...(entry.kind === "call" ? call(entry) : plain(entry, missing)));
    return { title: "Call" };
  }
  const nodes = detail.graph.nodes, at = new Map(nodes.map((n) => [n.id, n])), calls = Map.groupBy(detail.steps, (c) => c.id);
  const to = (step) => `#/queries/${id}/${encodeURIComponent(step)}`;
  const panel = h("section", { class: "panel", id: "step", tabindex: "-1", "aria-label": "The selected step" });
  const drawn = nodes.length && graph(nodes, detail.graph.path, (step) => { location.hash = to(step); });
  const fall = waterfall(detail, entry, to);
  put(main, crumbs, ...head(entry, detail),
    troubles(nodes, calls, to),
    answer(detail, at, to),
    nodes.length ? section("plan", "The plan as it ran", legend(detail.graph), h("div", { class: "stage", tabindex: "0", role: "region", "aria-label": "The graph of the plan" }, drawn.svg)) : empty("No tool was called.", detail.unmet.length ? "The answer says what is missing." : "The question needed none, or no tool matches; see the ", h("a", { href: "#/tools" }, "tools"), "."),
    h("div", { class: "split" }, section("times", "Where the time went", fall.element), nodes.length ? panel : ""));
  const select = (step) => {
    if (!nodes.length) return;
    const n = at.get(step) || nodes.find((x) => x.state === "failed" || x.state === "partly") || nodes[0];
    drawn.select(n.id); fall.select(n.id);
    put(panel, ...stepPanel(n, calls.get(n.id) || [], detail, nodes, to));
  };
  select(path[1]);
  return { title: entry.text || "Query", shown: () => select(path[1]),
    move: (next) => { select(next[1]); if (next[1]) { panel.focus({ preventScroll: true }); panel.scrollIntoView({ block: innerWidth < 900 ? "start" : "nearest" }); } } };
}

query.within = (shown, path) => (shown + "/").startsWith(`#/queries/${path[0]}/`);

const call = (e) => [h("div", { class: "head" }, h("h1", { class: "clamp" }, e.uses[0].tool), badge(e.outcome)),
  facts(["Server", h("a", { href: `#/servers/${encodeURIComponent(e.uses[0].server)}` }, e.uses[0].server)], ["Tool", h("a", { href: `#/tools/${encodeURIComponent(e.uses[0].server)}/${encodeURIComponent(e.uses[0].tool)}` }, e.uses[0].tool)],
    ["When", when(e.at)], ["Caller", caller(e.caller)], ["Took", ms(e.duration_ms)], ["Attempts", e.attempts], ["Result", bytes(e.bytes || 0)], ["Outcome", words(e.outcome)]),
  muted("Calls of clients are forwarded unchanged; their arguments and results are not stored.")];

const plain = (e, missing) => [h("div", { class: "head" }, h("h1", {}, e.text || "A query"), badge(e.outcome)), e.error ? h("p", { class: "problem" }, e.error) : "",
  facts(["When", when(e.at)], ["Caller", caller(e.caller)], ["Took", ms(e.duration_ms)]), muted(missing || "The query ended before it had a plan.")];

function head(e, d) {
  const tokens = ["planner", "synthesizer"].map((k) => d.usage[k]).filter((u) => u.calls).reduce((a, u) => a + u.input_tokens + u.output_tokens, 0);
  return [h("div", { class: "head" }, h("h1", { class: "clamp" }, d.question || "A question whose text is not kept"), badge(e.outcome), d.question && h("a", { href: "#/ask?q=" + encodeURIComponent(d.question) }, "Ask again")),
    facts(["When", when(e.at)], ["Caller", caller(e.caller)], ["Took", ms(e.duration_ms)], ["Planned by", { model: d.usage.planner.model || "the model", rules: "rules", given: "the caller" }[d.plan.source]],
      ["Rounds", d.plan.rounds > 1 ? d.plan.rounds : ""], ["Steps", d.graph.nodes.length], ["Tokens", tokens ? tokens.toLocaleString() : ""], ["Trace", code(d.trace_id), true]),
    d.needs_approval ? h("p", { class: "problem" }, "Some steps wait for approval and did not run.") : "",
    d.warnings?.length ? h("ul", { class: "warnings" }, d.warnings.map((w) => h("li", {}, w))) : "",
    d.contents ? "" : muted("Questions, arguments, results and answers are not kept (history.contents is false).")];
}

const shownTroubles = 5;

// why is the failure of a step in words.
const why = (e) => words(e.reason) + (e.message ? ": " + e.message : "");

// troubles lists the steps that failed, with the reasons. Each leads to its step.
function troubles(nodes, calls, to) {
  const failed = nodes.filter((n) => n.failed);
  if (!failed.length) return "";
  return section("troubles", "What failed",
    h("ul", { class: "rows" }, failed.slice(0, shownTroubles).map((n) => h("li", {}, h("a", { class: "row", href: to(n.id) }, badge(n.state), h("strong", { class: "subject cut" }, `${n.id} ${n.tool}`),
      h("span", { class: "grow clamp" }, why((calls.get(n.id) || []).find((c) => c.error)?.error || { reason: n.reason })))))),
    failed.length > shownTroubles ? muted(`and ${count(failed.length - shownTroubles, "more step")}`) : "");
}

// answer shows the answer with links to the steps that it names, and the quotes of its sources.
function answer(d, at, to) {
  if (!d.answer) return "";
  const refer = (text) => {
    const ids = text.split(/\s*,\s*/);
    return ids.every((x) => at.has(x)) && ["[", ids.map((x, i) => [i ? ", " : "", h("a", { href: to(x) }, x)]), "]"];
  };
  const quotes = (d.citations || []).filter((c) => c.quote);
  return section("answer", "Answer", h("div", { class: "answer long", tabindex: "0", role: "region", "aria-label": "Text of the answer" }, markdown(d.answer, refer)),
    d.unmet.length ? h("details", {}, h("summary", {}, `Not done: ${count(d.unmet.length, "part")} of the question`), h("ul", {}, d.unmet.map((u) => h("li", {}, u.text || "a part of the question", " – ", words(u.reason), u.tool ? [" (", u.tool, u.missing?.length ? ` needs ${u.missing.join(", ")}` : "", ")"] : "")))) : "",
    quotes.length ? h("details", { class: "sources" }, h("summary", {}, `Sources: ${count(quotes.length, "quote")}`), h("ul", {}, quotes.map((c) => h("li", {}, h("a", { href: to(c.step) }, c.step), " ", h("q", {}, c.quote))))) : "");
}

function legend(g) {
  const most = 16, cut = g.path.length > most ? [...g.path.slice(0, most - 2), `${g.path.length - most + 1} more`, g.path.at(-1)] : g.path;
  return h("p", { class: "muted legend" }, cut.length ? ["Critical path: ", cut.map((p, i) => [i ? " → " : "", h("strong", {}, p)]), ". It decides how long the answer took."] : "");
}

// waterfall is the list of phases and steps in the order of time, each with a bar.
function waterfall(d, entry, to) {
  const total = Math.max(entry.duration_ms, 0.001), rows = new Map(), critical = new Set(d.graph.path), calls = Map.groupBy(d.steps, (c) => c.id);
  let round = 0;
  const items = [
    ...d.phases.filter((p) => p.name !== "execution").map((p) => ({ name: p.name === "planning" ? `planning ${++round}` : p.name, started: p.started_ms, took: p.duration_ms, phase: true })),
    ...d.graph.nodes.map((n) => ({ name: n.id, tool: n.tool, started: n.started_ms, took: n.duration_ms, node: n })),
  ].sort((a, b) => a.started - b.started);
  const axis = h("li", { class: "axis", "aria-hidden": "true" }, h("span", {}), h("span", { class: "ticks" }, [0, 0.5, 1].map((x) => h("span", {}, x ? ms(total * x) : "0"))), h("span", {}));
  const bar = (name, started, took) => { const b = h("span", { class: name }); b.style.left = `${100 * started / total}%`; b.style.width = `${Math.max(0.3, 100 * took / total)}%`; return b; };
  const list = h("ol", { class: "fall", "aria-label": `Phases and steps within ${ms(total)}` }, axis, items.map((x) => {
    const ran = x.phase || x.node.calls > 0 && x.node.state !== "skipped", parts = [];
    if (ran) {
      parts.push(bar(`bar ${x.phase ? "phase" : tone(x.node.state)} ${critical.has(x.name) ? "critical" : ""}`, x.started, x.took));
      const tries = x.node && (calls.get(x.name) || []).length === 1 ? calls.get(x.name)[0].tries : [];
      if (tries.length > 1) for (const t of tries) parts.push(bar(`try ${t.reason ? "bad" : "good"}`, t.started_ms, t.duration_ms));
    }
    const label = x.phase ? h("span", { class: "label" }, x.name) : h("a", { class: "label", href: to(x.name) }, h("span", { class: "muted" }, x.name), " ", x.tool, x.node.loop ? ` ×${x.node.calls}` : "");
    const li = h("li", {}, label, h("span", { class: "track", "aria-hidden": "true" }, parts), h("span", { class: "took" }, ran ? ms(x.took) : words(x.node.state), x.node && x.node.state !== "ok" && ran ? h("span", { class: "hidden" }, ", " + words(x.node.state)) : "", x.node?.retries ? h("span", { class: "muted" }, ` ↻${x.node.retries}`) : ""));
    if (x.node) rows.set(x.name, [li, label]);
    return li;
  }));
  return { element: list, select(id) {
    for (const [k, [li, label]] of rows) { li.classList.toggle("selected", k === id); k === id ? label.setAttribute("aria-current", "true") : label.removeAttribute("aria-current"); }
  } };
}

const shownCalls = 30;

// stepPanel shows all that is known of a step.
function stepPanel(n, calls, d, nodes, to) {
  const step = d.plan.steps.find((x) => x.id === n.id) || {}, needed = nodes.filter((x) => x.needs.includes(n.id)).map((x) => x.id);
  const links = (ids) => ids.length ? ids.map((x, i) => [i ? ", " : "", h("a", { href: to(x) }, x)]) : "";
  const error = calls.find((c) => c.error);
  return [
    h("div", { class: "head" }, h("h2", { class: "clamp" }, `${n.id}: ${n.tool}`), badge(n.state)),
    error ? h("p", { class: "problem" }, why(error.error), n.loop && n.failed ? ` (${n.failed} of ${n.calls} calls)` : "") : "",
    facts(["Tool", n.server ? h("a", { href: `#/tools/${encodeURIComponent(n.server)}/${encodeURIComponent(own(n))}` }, own(n)) : n.tool], ["Server", n.server && h("a", { href: `#/servers/${encodeURIComponent(n.server)}` }, n.server)],
      ["Gets data of", n.carries?.join(", ")], ["Needs", links(n.needs)], ["Needed by", links(needed)], ["For each of", step.each && code(step.each)], ["Only if", step.when && code(step.when)], ["Value", step.pick && code(step.pick)],
      ["Began after", n.calls && n.state !== "skipped" ? ms(n.started_ms) : ""], ["Took", n.calls && n.state !== "skipped" ? ms(n.duration_ms) : ""]),
    d.contents ? h("details", { open: calls.length === 0 }, h("summary", {}, "Arguments as planned"), named("Arguments as planned", step.arguments)) : "",
    calls.length === 1 && !n.loop ? outcome(calls[0], d) : calls.slice(0, shownCalls).map((c) => h("details", { open: c === error }, h("summary", {}, `Call ${c.index ?? 0} `, badge(c.skipped ? "skipped" : c.success ? "ok" : "failed"), " ", ms(c.duration_ms)), outcome(c, d))),
    calls.length > shownCalls ? muted(`and ${count(calls.length - shownCalls, "more call")}; those that failed: ${calls.filter((c) => c.error).slice(0, 50).map((c) => c.index).join(", ") || "none"}`) : "",
    d.calls_left_out ? muted(`${count(d.calls_left_out, "call")} of this query are not kept.`) : "",
  ].flat();
}

const own = (n) => n.tool.startsWith(n.server + ".") ? n.tool.slice(n.server.length + 1) : n.tool;

const outcome = (c, d) => [
  c.tries.length > 1 ? table("Attempts", ["Attempt", "Began after", "Took", "Outcome"], c.tries.map((t, i) => [i + 1, ms(t.started_ms), ms(t.duration_ms), badge(t.reason || "ok")])) : "",
  d.contents && c.arguments !== undefined && c.arguments !== null ? [h("h3", {}, "Arguments"), named("Arguments", c.arguments)] : "",
  d.contents && c.result !== undefined && c.result !== null && c.success ? [h("h3", {}, "Result", c.truncated ? h("span", { class: "muted" }, " (cut)") : ""), block(c.result, "Result")] : c.truncated && c.success ? muted("The result is too large to store.") : "",
].flat();
