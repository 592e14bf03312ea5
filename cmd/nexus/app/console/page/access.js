// Who may do what: keys, profiles, the policy, and what has changed at tools.
import { h, badge, code, count, empty, facts, put, renew, table } from "./dom.js";
import { get, post } from "./net.js";
import { copied } from "./start.js";
import { sure, taken } from "./servers.js";
import { parse } from "./values.js";

// may tells in words what a key or a profile may use.
function may(r) {
  const some = (list, what) => list && [what, list.map((x, i) => [i ? ", " : "", code(x)])];
  const parts = [some(r.servers, "servers "), some(r.tools, "tools "), some(r.without, "not "), some(r.resources, "resources "), some(r.prompts, "prompts ")].filter(Boolean);
  return parts.length ? parts.map((p, i) => [i ? "; " : "", p]) : "everything";
}

export async function access({ main }) {
  const lists = h("div", {}), [all, { servers }] = await Promise.all([get("access"), get("servers")]);
  const load = async () => show(...await Promise.all([get("access"), get("servers").then((x) => x.servers)]));
  const show = (all, servers) => renew(lists,
    h("section", { "aria-labelledby": "keys" }, h("h2", { id: "keys" }, "API keys"), all.issuer && h("p", { class: "muted" }, "Access tokens of ", code(all.issuer), " are accepted, too."),
      all.keys.length ? table("API keys", ["Name", "May use", "Sees all callers", ...all.can_edit ? [""] : []], all.keys.map((k) => [h("strong", {}, k.name), may(k), k.ops ? badge("ok", "ops: true") : "no", ...all.can_edit ? [revoke(k, load)] : []])) :
        empty("Nobody needs a key.", "Only clients on this machine reach a router without keys."),
      !all.can_edit && [h("p", { class: "muted" }, "This prints a key and the settings that accept it:"), copied("nexus keys new NAME")]),
    h("section", { "aria-labelledby": "profiles" }, h("h2", { id: "profiles" }, "Profiles"),
      all.profiles.length ? table("Profiles", ["Name", "Path", "Surface", "May use"], all.profiles.map((p) => [h("strong", {}, p.name), code(p.path), p.surface, may(p)])) :
        h("p", { class: "muted" }, "None. A profile is a part of the servers and tools with a path of its own: ", code("profiles: {support: {servers: [hr]}}"), " in settings.yaml.")),
    h("section", { "aria-labelledby": "pins" }, h("h2", { id: "pins" }, "Changed tools"), changed(servers)),
    h("section", { "aria-labelledby": "policy" }, h("h2", { id: "policy" }, "Policy"),
      all.policy.length ? table("Policy", ["Rule", "When", "Then", "Reason"], all.policy.map((r, i) => [code(`policy[${i}]`), code(r.when), badge({ allow: "ok", ask: "warn" }[r.then] || "bad", r.then), r.reason || ""])) :
        h("p", { class: "muted" }, "There are no rules; the built-in ones decide. Writes: ", code(`confirm_writes: ${all.confirm_writes}`), ".")));
  show(all, servers);
  put(main, h("h1", {}, "Access"), lists, !all.can_edit ? "" : maker(servers, load), explainer(all, servers));
  return { title: "Access", refresh: load };
}

// revoke is the button that removes a key.
function revoke(k, done) {
  if (k.name === "env") return h("span", { class: "muted" }, "of NEXUS_API_KEY");
  return h("button", { type: "button", class: "small", id: `revoke-${k.name}`, "aria-label": `Revoke ${k.name}`, onclick: async () => {
    if (!await sure(`Revoke ${k.name}?`, "Who uses this key is refused from then on. This cannot be undone.", "Revoke")) return;
    try { await post(`keys/${encodeURIComponent(k.name)}/revoke`, {}); } catch (error) { await sure("Not done", error.message, "OK"); }
    await taken(done);
  } }, "Revoke");
}

// maker is the form that makes a key.
function maker(servers, done) {
  const out = h("div", { "aria-live": "polite" });
  const make = async (e) => {
    e.preventDefault();
    const f = new FormData(e.target);
    try {
      const { key } = await post("keys", { name: f.get("name"), servers: f.getAll("server"), ops: f.has("ops") });
      put(out, h("p", {}, "The key, shown this once:"), copied(key), h("p", { class: "muted" }, "Clients send it as ", code("Authorization: Bearer KEY"), "."));
      e.target.reset();
      await taken(done);
    } catch (error) { put(out, h("p", { class: "problem", role: "alert" }, error.message)); }
  };
  return h("section", { "aria-labelledby": "maker" }, h("h2", { id: "maker" }, "New key"), h("form", { class: "fields", onsubmit: make },
    h("div", { class: "field" }, h("label", { for: "key-name" }, "Name"), h("input", { id: "key-name", name: "name", required: true, maxlength: 64, autocomplete: "off" })),
    servers.length > 0 && h("fieldset", {}, h("legend", {}, "May use"), h("p", { class: "muted" }, "No choice means all servers."), servers.map((s) => h("label", { class: "choice" }, h("input", { type: "checkbox", name: "server", value: s.name }), " ", s.name))),
    h("label", { class: "choice" }, h("input", { type: "checkbox", name: "ops" }), " Sees all callers (", code("ops: true"), ")"),
    h("p", { class: "buttons" }, h("button", { class: "primary" }, "Make a key"))), out);
}

function changed(servers) {
  const those = servers.filter((s) => s.changed);
  return those.length ? h("ul", { class: "rows" }, those.map((s) => h("li", {}, h("a", { class: "row", href: `#/servers/${encodeURIComponent(s.name)}` }, badge("warn", count(s.changed.length, "tool")), h("strong", { class: "subject cut" }, s.name), h("span", { class: "grow" }, "see what has changed, and approve it"))))) :
    h("p", { class: "muted" }, "No tool has changed since it was approved.");
}

// explainer is the form that tells the decision on a call.
function explainer(all, servers) {
  const out = h("div", { "aria-live": "polite" });
  const input = (name, label, props, list) => h("div", { class: "field" }, h("label", { for: "explain-" + name }, label), h("input", { id: "explain-" + name, name, list: list && `list-${name}`, autocomplete: "off", ...props }), list && h("datalist", { id: `list-${name}` }, list.map((x) => h("option", { value: x }))));
  const choice = (name, label, options) => h("div", { class: "field" }, h("label", { for: "explain-" + name }, label), h("select", { id: "explain-" + name, name }, options.map(([value, text]) => h("option", { value }, text))));
  const tools = input("tool", "Tool", { required: true, placeholder: "server__tool" }, []);
  get("tools").then((x) => put(tools.querySelector("datalist"), x.tools.map((t) => h("option", { value: t.name })))).catch(() => {});
  const ask = async (e) => {
    e.preventDefault();
    const f = Object.fromEntries(new FormData(e.target));
    try {
      const v = await post("explain", { ...f, arguments: parse(f.arguments || "{}"), carries: f.carries ? [f.carries] : [], round: f.source === "client" ? 0 : 1 });
      put(out, h("p", {}, badge({ allow: "ok", ask: "warn" }[v.decision] || "bad", { allow: "is allowed", ask: "asks for consent", deny: "is denied" }[v.decision] || v.decision)),
        facts(["Rule", v.rule ? code(v.rule) : "none", false], ["When", v.when && code(v.when), true], ["Reason", v.reason, true]), (v.notes || []).map((n) => h("p", { class: "muted" }, n)));
    } catch (error) { put(out, h("p", { class: "problem", role: "alert" }, error instanceof SyntaxError ? "The arguments are not valid JSON." : error.message)); }
  };
  return h("section", { "aria-labelledby": "explain" }, h("h2", { id: "explain" }, "Explain a decision"), h("p", { class: "muted" }, "What would happen to a call? It is not made."),
    h("form", { class: "fields", onsubmit: ask }, input("caller", "Caller", { required: true, value: all.keys[0]?.name || "anonymous" }, all.keys.map((k) => k.name)), tools,
      h("div", { class: "field" }, h("label", { for: "explain-arguments" }, "Arguments"), h("textarea", { id: "explain-arguments", name: "arguments", class: "mono", rows: 2, value: "{}" })),
      choice("profile", "Profile", [["router", "router"], ["proxy", "proxy"], ...all.profiles.map((p) => [p.name, p.name])]),
      choice("source", "Chosen by", [["client", "a client"], ["model", "a model"], ["rules", "rules"], ["given", "a given plan"]]),
      choice("carries", "Carries results of", [["", "no server"], ...servers.map((s) => [s.name, s.name])]),
      h("p", { class: "buttons" }, h("button", { class: "primary" }, "Explain"))), out);
}
