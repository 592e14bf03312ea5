// Who may do what: keys, profiles, the policy, and what has changed at tools.
import { h, badge, code, count, empty, facts, labelled, muted, options, put, renew, section, table, wrong } from "./dom.js";
import { get, post } from "./net.js";
import { copied } from "./start.js";
import { order } from "./sure.js";
import { parse } from "./values.js";

// may tells in words what a key or a profile may use.
function may(r) {
  const some = (list, what) => list && [what, list.map((x, i) => [i ? ", " : "", code(x)])];
  const parts = [some(r.servers, "servers "), some(r.tools, "tools "), some(r.without, "not "), some(r.resources, "resources "), some(r.prompts, "prompts ")].filter(Boolean);
  return parts.length ? parts.map((p, i) => [i ? "; " : "", p]) : "everything";
}

export async function access({ main }) {
  const lists = h("div", {});
  let all, servers;
  const load = async () => {
    [all, { servers }] = await Promise.all([get("access"), get("servers")]);
    const revoke = (k) => k.name === "env" ? h("span", { class: "muted" }, "of NEXUS_API_KEY") :
      order(`revoke-${k.name}`, "Revoke", k.name, `keys/${encodeURIComponent(k.name)}/revoke`, {}, load, "Who uses this key is refused from then on. This cannot be undone.");
    const edit = (name) => all.can_edit && h("p", {}, h("a", { href: `#/access/${name}` }, `Edit the ${name}`));
    renew(lists,
      section("keys", "API keys", all.issuer && muted("Access tokens of ", code(all.issuer), " are accepted, too."),
        all.keys.length ? table("API keys", ["Name", "May use", "Sees all callers", ...all.can_edit ? [""] : []], all.keys.map((k) => [h("strong", {}, k.name), may(k), k.ops ? badge("ok", "ops: true") : "no", ...all.can_edit ? [revoke(k)] : []])) :
          empty("Nobody needs a key.", "Only clients on this machine reach a router without keys."),
        !all.can_edit && [muted("This prints a key and the settings that accept it:"), copied("nexus keys new NAME")]),
      section("profiles", "Profiles",
        all.profiles.length ? table("Profiles", ["Name", "Path", "Surface", "May use"], all.profiles.map((p) => [h("strong", {}, p.name), code(p.path), p.surface, may(p)])) :
          muted("None. A profile is a part of the servers and tools with a path of its own: ", code("profiles: {support: {servers: [hr]}}"), " in settings.yaml."), edit("profiles")),
      section("pins", "Changed tools", changed(servers)),
      section("policy", "Policy",
        all.policy.length ? table("Policy", ["Rule", "When", "Then", "Reason"], all.policy.map((r, i) => [code(`policy[${i}]`), code(r.when), badge(r.then), r.reason || ""])) :
          muted("There are no rules; the built-in ones decide. Writes: ", code(`confirm_writes: ${all.confirm_writes}`), "."), edit("policy")));
  };
  await load();
  put(main, h("h1", {}, "Access"), lists, all.can_edit && maker(servers, load), explainer(all, servers));
  return { title: "Access", refresh: load };
}

// maker is the form that makes a key.
function maker(servers, done) {
  const out = h("div", { "aria-live": "polite" });
  const make = async (e) => {
    e.preventDefault();
    const f = new FormData(e.target);
    try {
      const { key, warning } = await post("keys", { name: f.get("name"), servers: f.getAll("server"), ops: f.has("ops") });
      put(out, h("p", {}, "The key, shown this once:"), copied(key), muted("Clients send it as ", code("Authorization: Bearer KEY"), "."), warning && wrong(warning));
      e.target.reset();
      await done();
    } catch (error) { put(out, wrong(error.message)); }
  };
  return section("maker", "New key", h("form", { class: "fields", onsubmit: make },
    labelled("key-name", "Name", h("input", { id: "key-name", name: "name", required: true, maxlength: 64, autocomplete: "off" })),
    servers.length > 0 && h("fieldset", {}, h("legend", {}, "May use"), muted("No choice means all servers."), servers.map((s) => h("label", { class: "choice" }, h("input", { type: "checkbox", name: "server", value: s.name }), " ", s.name))),
    h("label", { class: "choice" }, h("input", { type: "checkbox", name: "ops" }), " Sees all callers (", code("ops: true"), ")"),
    h("p", { class: "buttons" }, h("button", { class: "primary" }, "Make a key"))), out);
}

function changed(servers) {
  const those = servers.filter((s) => s.changed);
  return those.length ? h("ul", { class: "rows" }, those.map((s) => h("li", {}, h("a", { class: "row", href: `#/servers/${encodeURIComponent(s.name)}` }, badge("warn", count(s.changed.length, "tool")), h("strong", { class: "subject cut" }, s.name), h("span", { class: "grow" }, "see what has changed, and approve it"))))) :
    muted("No tool has changed since it was approved.");
}

// explainer is the form that tells the decision on a call.
function explainer(all, servers) {
  const out = h("div", { "aria-live": "polite" }), tools = h("datalist", { id: "list-tool" });
  const field = (tag, name, label, props, inner, list) => labelled("explain-" + name, label, [h(tag, { id: "explain-" + name, name, ...props }, inner), list]);
  const input = (name, label, props, list) => field("input", name, label, { list: `list-${name}`, required: true, autocomplete: "off", ...props }, "", list);
  const choice = (name, label, list) => field("select", name, label, {}, options(list));
  get("tools").then((x) => put(tools, options(x.tools.map((t) => [t.name])))).catch(() => {});
  const ask = async (e) => {
    e.preventDefault();
    const f = Object.fromEntries(new FormData(e.target));
    try {
      const v = await post("explain", { ...f, arguments: parse(f.arguments || "{}"), carries: f.carries ? [f.carries] : [], round: f.source === "client" ? 0 : 1 });
      put(out, h("p", {}, badge(v.decision, { allow: "is allowed", ask: "asks for consent", deny: "is denied" }[v.decision])),
        facts(["Rule", v.rule ? code(v.rule) : "none", false], ["When", v.when && code(v.when), true], ["Reason", v.reason, true]), (v.notes || []).map((n) => muted(n)));
    } catch (error) { put(out, wrong(error instanceof SyntaxError ? "The arguments are not valid JSON." : error.message)); }
  };
  return section("explain", "Explain a decision", muted("What would happen to a call? It is not made."),
    h("form", { class: "fields", onsubmit: ask },
      input("caller", "Caller", { value: all.keys[0]?.name || "anonymous" }, h("datalist", { id: "list-caller" }, options(all.keys.map((k) => [k.name])))),
      input("tool", "Tool", { placeholder: "server__tool" }, tools),
      field("textarea", "arguments", "Arguments", { class: "mono", rows: 2, value: "{}" }),
      choice("profile", "Profile", [["router", "router"], ["proxy", "proxy"], ...all.profiles.map((p) => [p.name, p.name])]),
      choice("source", "Chosen by", [["client", "a client"], ["model", "a model"], ["rules", "rules"], ["given", "a given plan"]]),
      choice("carries", "Carries results of", [["", "no server"], ...servers.map((s) => [s.name, s.name])]),
      h("p", { class: "buttons" }, h("button", { class: "primary" }, "Explain"))), out);
}
