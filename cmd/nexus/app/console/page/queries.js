// The list of queries and calls.
import { h, badge, bytes, caller, code, empty, ms, options, put, renew, table, when } from "./dom.js";
import { get } from "./net.js";
import { live } from "./now.js";

const rest = 2000; // ms without a move of the mouse until the list moves

const names = ["text", "kind", "failed", "server", "tool", "caller", "longer", "since"];

export async function queries({ main, params }) {
  const f = Object.fromEntries(names.map((n) => [n, params.get(n) || ""]));
  const input = (name, label, props) => h("label", {}, label, h("input", { name, value: f[name], ...props }));
  const choice = (name, label, list) => h("label", {}, label, h("select", { name }, options(list, f[name])));
  const apply = (e) => {
    e?.preventDefault();
    const at = new URLSearchParams([...new FormData(filters)].filter(([, v]) => v));
    location.hash = "#/queries" + (at.size ? "?" + at : "");
  };
  const more = ["server", "tool", "caller", "longer"].some((n) => f[n]);
  const filters = h("form", { class: "filters", role: "search", onsubmit: apply, onchange: () => apply() },
    h("label", { class: "grow" }, "Question", h("input", { type: "search", name: "text", value: f.text, placeholder: "words of the question, or a trace id" })),
    choice("kind", "Kind", [["", "all"], ["query", "queries"], ["call", "calls"]]),
    choice("failed", "Outcome", [["", "any"], ["1", "with problems"]]),
    choice("since", "Time", [["", "any time"], ["15m", "15 minutes"], ["1h", "1 hour"], ["24h", "1 day"]]),
    h("details", { open: more }, h("summary", {}, "More filters"), h("div", { class: "filters" }, input("server", "Server"), input("tool", "Tool"), input("caller", "Caller", { placeholder: "key:NAME" }), input("longer", "Longer than, ms", { type: "number", min: 0 }))),
    h("button", { class: "small" }, "Apply"));
  const running = h("div", {}), out = h("div", {}), next = h("p", {}), note = h("p", { class: "muted" });
  const state = { entries: [], more: 0 };
  const show = (page) => {
    renew(running, ...(page.live.length ? [h("h2", {}, "Running"), live(page.live)] : []));
    renew(out, state.entries.length ? table("Queries and calls", ["What", "Outcome", "When", "Caller", "#Took"], state.entries.map(row)) : nothing(page, params.size > 0));
    renew(note, page.history.memory_only && `The history is lost when the router stops: ${page.history.memory_only}.`);
    renew(next, ...(state.more ? [h("button", { type: "button", onclick: older }, "Show older")] : state.entries.length > 20 ? [h("span", { class: "muted" }, "That is all.")] : []));
  };
  const load = async () => {
    const page = await get("queries", { ...f, limit: Math.max(50, Math.min(state.entries.length, 500)) });
    state.entries = page.entries; state.more = page.more;
    show(page);
  };
  const older = async () => {
    const page = await get("queries", { ...f, before: state.more });
    state.entries.push(...page.entries); state.more = page.more;
    show(page);
  };
  await load();
  put(main, h("h1", {}, "Queries and calls"), filters, running, out, next, note);
  let seen = 0, moved = 0;
  out.addEventListener("pointermove", (e) => { if (e.pointerType === "mouse") moved = Date.now(); });
  out.addEventListener("pointerleave", () => { moved = 0; });
  return { title: "Queries", refresh: async (c) => {
    for (let left; (left = moved + rest - Date.now()) > 0;) await new Promise((r) => setTimeout(r, left)); // who moves the mouse here wants to click
    if (c.history !== seen && state.entries.length <= 50) { seen = c.history; await load(); } else renew(running, ...(c.live.length ? [h("h2", {}, "Running"), live(c.live)] : []));
  } };
}

function row(e) {
  const tools = (e.uses || []).map((u) => u.tool + (u.calls > 1 ? ` ×${u.calls}` : "")).join(", ");
  const what = e.kind === "query" ? e.text || "a question whose text is not kept" : `${e.uses[0].server} › ${e.uses[0].tool}`;
  return [[h("a", { href: `#/queries/${e.id}`, class: "clamp" }, what), h("div", { class: "note clamp" }, e.error || (e.kind === "query" ? tools || "no tool was called" : "a call of a client, " + bytes(e.bytes || 0)))],
    badge(e.outcome), when(e.at), h("span", { class: "cut" }, caller(e.caller)), ms(e.duration_ms)];
}

function nothing(page, filtered) {
  if (page.history.off) return empty("No history is kept.", "Set ", code("history: {entries: 10000}"), " in settings.yaml and restart.");
  if (filtered) return empty("Nothing matches the filter.", h("a", { href: "#/queries" }, "Show everything"), ".");
  return empty("There are no queries or calls yet.", h("a", { href: "#/ask" }, "Ask a question"), ", or connect a client to ", code(location.origin + "/mcp"), ".");
}
