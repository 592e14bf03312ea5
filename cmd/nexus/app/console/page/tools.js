// The tools: a list that can be searched, and one with a form to call it.
import { h, badge, block, bytes, code, count, empty, facts, ms, muted, options, put, say, table, words, wrong } from "./dom.js";
import { get, Client } from "./net.js";
import { form } from "./form.js";
import { sure } from "./sure.js";
import { consent } from "./consent.js";
import { named } from "./values.js";

const link = (t) => `#/tools/${encodeURIComponent(t.server)}/${encodeURIComponent(t.tool)}`;
const rate = (t) => t.calls ? `${Math.round(100 * t.failed / t.calls)} %` : "–";
const kind = (t) => h("span", { class: `badge ${t.reads ? "calm" : t.destructive ? "bad" : "warn"}` }, t.reads ? "reads" : t.destructive ? "destructive" : "writes");
const most = 300;

// orders of the list.
const orders = { __proto__: null, failed: (t) => t.failed / (t.calls || 1), calls: (t) => t.calls, time: (t) => t.mean_ms };

export async function tools({ main, params }) {
  let server = params.get("server") || "", turn = 0;
  const search = h("input", { type: "search", id: "search", placeholder: "What should the tool do?", value: params.get("q") || "" });
  const out = h("div", {}), picker = h("select", { id: "server", onchange: () => { server = picker.value; load(); } });
  const order = h("select", { id: "order", onchange: () => load() }, options([["", "as listed"], ["failed", "most failures"], ["calls", "most calls"], ["time", "slowest"]], params.get("order")));
  const load = async () => {
    const mine = ++turn, found = await get("tools", { q: search.value, server });
    if (mine !== turn) return;
    const by = orders[order.value], list = (by ? found.tools.toSorted((a, b) => by(b) - by(a)) : found.tools).slice(0, most);
    put(out,
      h("p", { class: "muted", role: "status" }, search.value ? `${count(found.total, "tool")} found${by ? "" : ", the best first"}` : count(found.total, "tool") + (found.total > most ? `, the first ${most} are shown` : "")),
      found.missing?.length ? h("p", { class: "problem" }, "Not listed: " + found.missing.join("; ")) : "",
      list.length ? table("Tools", ["Tool", "Server", "Kind", "#Calls", "#Failed", "#Mean"], list.map((t) => [
        [h("a", { href: link(t), class: "name clamp" }, t.title || t.tool), t.title && t.title !== t.tool && h("div", { class: "note clamp" }, code(t.tool)), h("div", { class: "note clamp" }, t.description)],
        h("a", { href: `#/servers/${encodeURIComponent(t.server)}`, class: "cut" }, t.server), kind(t), t.calls, rate(t), t.calls ? ms(t.mean_ms) : "–"])) :
        search.value ? empty("No tool fits.", "Try other words, or ", h("a", { href: "#/tools" }, "list all tools"), ".") :
          empty("There are no tools that your key may use.", "Look at the ", h("a", { href: "#/servers" }, "servers"), ": are they connected?"));
  };
  let timer;
  search.addEventListener("input", () => { clearTimeout(timer); timer = setTimeout(load, 200); });
  const all = (await get("servers")).servers.map((x) => x.name);
  picker.append(...options([["", "all servers"], ...all.map((name) => [name, name])], server));
  put(main, h("h1", {}, "Tools"), h("div", { class: "filters" }, h("label", { class: "grow" }, "Search", search), h("label", {}, "Server", picker), h("label", {}, "Order", order)), out);
  await load();
  return { title: "Tools", leave: () => clearTimeout(timer) };
}

export async function tool({ main, path }) {
  const [server, name] = path, t = await get("tool", { server, tool: name });
  const fields = form(t.schema), out = h("div", { "aria-live": "polite" });
  const client = new Client((p) => elicited(p, out));
  const button = h("button", { class: "primary" }, "Call");
  const call = async (e) => {
    e.preventDefault();
    let args;
    try { args = fields.read(); } catch (error) { put(out, wrong(error.message)); return; }
    if (!t.reads && !await sure(`Call ${t.tool}?`, h("div", {}, h("p", {}, t.destructive ? "This tool is marked destructive." : "This tool may change something.", " Server ", h("strong", {}, server), " gets:"), named("Arguments", args)), "Call it")) return;
    button.disabled = true;
    put(out, muted("Calling…"));
    const began = performance.now();
    try {
      if (!client.session) await client.open();
      const result = await client.request("tools/call", { name: t.name, arguments: args }, (p) => { const at = out.querySelector("p"); if (at && p.message) at.textContent = p.message; });
      const took = performance.now() - began;
      put(out, h("h2", {}, "Result"), h("p", {}, badge(result.isError ? "bad" : "ok", result.isError ? "the tool failed" : "ok"), ` after ${ms(took)}`), contents(result));
      say(result.isError ? "The tool failed" : "The tool has answered");
    } catch (error) { put(out, h("p", { class: "problem" }, error.message)); }
    button.disabled = false;
  };
  const at = `server=${encodeURIComponent(server)}&tool=${encodeURIComponent(name)}`;
  put(main,
    h("p", { class: "crumbs" }, h("a", { href: "#/tools" }, "Tools"), " / ", h("a", { href: `#/tools?server=${encodeURIComponent(server)}` }, server)),
    h("div", { class: "head" }, h("h1", { class: "clamp" }, t.title || name), kind(t)),
    h("div", { class: "prose long", tabindex: "0", role: "region", "aria-label": "Description" }, t.description || "This tool has no description."),
    facts(["Name", h("code", { class: "clamp" }, t.name), true], ["Calls in the history", t.calls ? h("a", { href: "#/queries?" + at }, count(t.calls, "call")) : "none"],
      ["Failed", t.failed ? h("a", { href: `#/queries?failed=1&${at}` }, `${t.failed} (${rate(t)})`) : "none"], ["Mean time", t.calls ? ms(t.mean_ms) : ""]),
    h("section", {}, h("h2", {}, "Call it"), h("form", { onsubmit: call, novalidate: true }, fields.element, h("p", {}, button)), out),
    h("details", {}, h("summary", {}, "Input schema"), block(t.schema, "Input schema")),
    t.output_schema ? h("details", {}, h("summary", {}, "Output schema"), block(t.output_schema, "Output schema")) : "");
  return { title: t.title || name, leave: () => client.close() };
}

// contents shows the parts of a result, each with its kind.
export function contents(result) {
  const parts = (result.content || []).map((c) => [h("h3", {}, [words(c.type), c.mimeType || c.resource?.mimeType].filter(Boolean).join(", ")), part(c)]);
  if (result.structuredContent !== undefined) parts.push(h("details", { open: !parts.length }, h("summary", {}, "structured content"), block(result.structuredContent, "Structured content")));
  return parts.length ? parts : muted("The result is empty.");
}

const pictures = ["image/png", "image/jpeg", "image/gif", "image/webp"];

function part(c) {
  if (c.type === "text") return block(c.text, "Text");
  if (c.type === "resource" && typeof c.resource?.text === "string") return [h("p", {}, code(c.resource.uri)), block(c.resource.text, "Text of the resource")];
  const data = c.data ?? c.resource?.blob;
  if (typeof data !== "string" || !/^[A-Za-z0-9+/=\s]*$/.test(data)) return block(c, "Content");
  return [c.type === "image" && pictures.includes(c.mimeType) && h("img", { src: `data:${c.mimeType};base64,${data}`, alt: "Image of the result" }),
    h("p", {}, c.resource && [code(c.resource.uri), ", "], bytes(Math.floor(data.length * 3 / 4)), ", ", h("a", { href: `data:application/octet-stream;base64,${data}`, download: "result" }, "save it"))];
}

// elicited shows what the router or a server asks as a form, and returns the user's answer.
export function elicited(params, place) {
  return new Promise((resolve) => {
    const fields = form(params.requestedSchema || {}), problem = h("p", { class: "problem", role: "alert", hidden: true });
    const asks = Object.keys(params.requestedSchema?.properties || {}).length > 0, call = asks ? undefined : consent(params.message);
    const end = (result, text) => { box.replaceWith(muted(text)); resolve(result); };
    const box = h("form", { class: "asked", "aria-label": call?.title || "The router asks", novalidate: true, onsubmit: (e) => {
      e.preventDefault();
      try { end({ action: "accept", content: fields.read() }, call ? "You allowed it." : "You agreed."); } catch (error) { problem.textContent = error.message; problem.hidden = false; }
    } }, h("div", { tabindex: "-1" }, call ? [h("h2", {}, call.title), call.nodes] : [h("h2", {}, "Your answer is needed"), h("p", { class: "prose" }, params.message)]), asks && fields.element, problem,
    h("p", { class: "buttons" }, h("button", { class: call?.destroys ? "primary danger" : "primary" }, asks ? "Send" : "Allow"), h("button", { type: "button", onclick: () => end({ action: "decline" }, "You declined.") }, "Decline")));
    place.append(box);
    say(call ? `Your consent is needed: ${call.title}` : "Your answer is needed");
    if (document.activeElement?.closest(".asked")) return; // what is typed there is not for this form
    box.querySelector(asks ? "input, select, textarea" : "[tabindex='-1']").focus(); // never a button, which a key meant for the text would press
  });
}
