// Asks a question as an MCP client, with progress, forms for what is missing and for consent, and the growing answer.
import { h, badge, code, count, empty, facts, muted, put, say } from "./dom.js";
import { get, Client } from "./net.js";
import { markdown } from "./markdown.js";
import { elicited } from "./tools.js";
import { sure } from "./sure.js";
import { table } from "./consent.js";

let kept; // the last question that was sent; it goes on while other views are shown
addEventListener("pagehide", () => kept?.end());

// waits marks the link to this view while the router waits for the user.
const waits = (on) => { document.querySelector('#nav a[href="#/ask"]').textContent = on ? "Ask (waits for you)" : "Ask"; };

export async function ask({ main, params }) {
  if (kept && !params.has("q")) { put(main, ...kept.nodes); return kept.view; }
  const mine = { end() { client.close(); abort.abort(); } };
  const box = h("textarea", { id: "question", rows: 3, required: true, maxlength: 10000, value: params.get("q") || "", placeholder: "What do you want to know or do?" });
  const send = h("button", { class: "primary" }, "Ask"), stop = h("button", { type: "button", hidden: true }, "Stop");
  const forms = h("div", {}), out = h("div", { class: "answers" });
  const bar = h("progress", { max: 1, value: 0, "aria-label": "Progress" }), message = h("span", { class: "muted" });
  const progress = h("div", { class: "row", hidden: true }, bar, h("span", { class: "grow" }, message));
  const asks = () => forms.querySelector("form");
  const client = new Client((p) => { waits(true); return elicited(p, forms).finally(() => waits(asks())); });
  let abort;
  const run = async (args) => {
    if (kept !== mine) kept?.end();
    kept = mine;
    waits(false);
    abort = new AbortController();
    send.disabled = true; stop.hidden = progress.hidden = false;
    bar.value = 0; message.textContent = "Sending…"; put(forms);
    const text = h("div", { class: "answer" });
    put(out, text);
    try {
      if (!client.session) await client.open();
      const result = await client.request("tools/call", { name: "process_query", arguments: args }, (p) => {
        bar.value = p.progress;
        if (p.progress > 0.9 && p.progress < 1 && p.message !== "Synthesizing response...") { put(text, markdown(p.message)); message.textContent = "Writing the answer…"; } else message.textContent = p.message || "";
      }, abort.signal);
      if (kept === mine) await show(result, args);
    } catch (error) {
      put(out, abort.signal.aborted ? muted("Stopped.") : h("p", { class: "problem" }, error.message));
    }
    for (const form of forms.querySelectorAll("form")) form.remove();
    if (kept === mine) waits(false);
    send.disabled = false; stop.hidden = progress.hidden = true;
  };
  const show = async (result, args) => {
    const a = result.structuredContent;
    if (result.isError || !a) return put(out, h("p", { class: "problem" }, result.content?.[0]?.text || "The router gave no answer."));
    const link = h("p", {});
    put(out, h("h2", {}, "Answer ", a.degraded ? badge("degraded", "not everything was done") : badge("ok")), h("div", { class: "answer" }, markdown(a.answer)),
      a.needs_approval ? h("p", { class: "buttons" }, h("button", { class: "primary", onclick: async () => {
        const steps = a.plan.steps.map((x) => [h("h3", {}, x.id, ": ", x.tool || "a computation", x.server && [" at ", x.server]),
          a.steps.filter((s) => s.id === x.id && s.error?.reason === "needs_approval").map((s) => h("p", {}, s.error.message)),
          facts(...[["For each of", x.each], ["Only if", x.when], ["Picks", x.pick]].filter(([, e]) => e).map(([k, e]) => [k, code(e)])), x.tool ? table([JSON.stringify(x.arguments)]) : ""]);
        if (await sure("Run this plan?", h("div", {}, steps), "Run it")) run({ ...args, plan: a.plan });
      } }, "Approve and run")) : "", link);
    say("The answer is complete");
    for (let i = 0; i < 10 && kept === mine; i++) { // the history is a moment behind
      const page = await get("queries", { kind: "query", limit: 10 }).catch(() => ({ entries: [] })); // the answer stays
      const found = page.entries.find((e) => e.trace_id === a.trace_id);
      if (found) { link.append(h("a", { href: `#/queries/${found.id}` }, `See how: ${count(a.steps.length, "step")}, times and sources`)); break; }
      await new Promise((r) => setTimeout(r, 200));
    }
  };
  stop.addEventListener("click", () => abort?.abort());
  box.addEventListener("keydown", (e) => { if (e.key === "Enter" && (e.ctrlKey || e.metaKey)) box.form.requestSubmit(); });
  const servers = (await get("servers")).servers.filter((x) => x.status !== "disabled");
  mine.nodes = [h("h1", {}, "Ask"),
    servers.length ? h("form", { class: "ask", onsubmit: (e) => { e.preventDefault(); if (box.value.trim()) run({ query: box.value }); } }, h("label", { for: "question" }, "Your question"), box, h("p", { class: "buttons" }, send, stop, h("span", { class: "muted" }, "Ctrl+Enter sends the question. Writes need your consent."))) :
      empty("There is no server to ask.", "Look at the ", h("a", { href: "#/servers" }, "servers"), "."), progress, forms, out];
  put(main, ...mine.nodes);
  return mine.view = { title: "Ask", shown: () => { if (!asks()) box.focus(); } };
}
