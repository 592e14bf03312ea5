// The servers: all of them, or one.
import { h, ago, badge, code, count, empty, facts, ms, muted, renew, table, when, words } from "./dom.js";
import { get } from "./net.js";
import { order } from "./sure.js";

const api = (name) => `servers/${encodeURIComponent(name)}`, link = (name) => "#/" + api(name);

export async function servers({ main, params }) {
  const only = params.get("state"), wanted = (s) => !only || s.status === only;
  const show = (all) => renew(main, h("div", { class: "head" }, h("h1", {}, "Servers"), all.can_edit && h("a", { href: "#/servers/+" }, "Add a server")), states(all.servers, only), all.servers.length === 0 ?
    empty("There are no servers that your key may see.", "Add some to ", code("servers.yaml"), "; the router takes them over while it runs.") :
    table("Servers", ["Server", "State", "#Tools", "#Calls", "#Failed", "#p50 / p95", "#In flight", "#Sessions", ""], all.servers.filter(wanted).map((s) => [
      [h("a", { href: link(s.name), class: "name whole" }, s.name), problem(s) && h("div", { class: "note" }, problem(s))],
      [badge(s.status), h("div", { class: "note" }, ago(s.since))], s.tools, s.calls.toLocaleString(),
      s.failed ? h("a", { href: `#/queries?failed=1&server=${encodeURIComponent(s.name)}` }, s.failed.toLocaleString()) : 0,
      s.latency_ms.p95 ? `${ms(s.latency_ms.p50)} / ${ms(s.latency_ms.p95)}` : "–",
      s.in_flight + (s.queued ? ` + ${s.queued} waiting` : ""), s.sessions, toggle(s, all.can_switch, load)])));
  const load = async () => show(await get("servers"));
  await load();
  return { title: "Servers", refresh: load };
}

// states counts the servers in each state. Each count leads to these servers.
function states(list, only) {
  const counts = Map.groupBy(list, (s) => s.status);
  if (counts.size < 2 && !only) return "";
  return h("p", { class: "lead" }, [...counts].map(([state, those], i) => [i ? ", " : "", h("a", { href: `#/servers?state=${state}`, "aria-current": state === only && "true" }, `${those.length} ${words(state)}`)]),
    only && [" · ", h("a", { href: "#/servers" }, "all servers")]);
}

// problem is what is wrong with a server, in one line.
function problem(s) {
  const parts = [];
  const broken = s.breaker !== "closed";
  if (s.status !== "disabled" && broken) parts.push(s.breaker === "open" ? "calls are held back (breaker open)" : "calls kept failing, the next one is a trial (breaker half-open)");
  if (s.last_error && (s.status !== "connected" || broken)) parts.push(`${s.last_error.reason}: ${s.last_error.message}`);
  if (s.changed) parts.push(`${count(s.changed.length, "tool")} changed since approved`);
  if (s.findings) parts.push("hidden characters in definitions");
  if (s.quarantined_tools) parts.push(`${count(s.quarantined_tools.length, "tool")} quarantined`);
  return parts.join("; ");
}

// toggle is the button that switches a server. Disabling asks first.
function toggle(s, may, done) {
  const on = s.status !== "disabled";
  return may && order(`switch-${s.name}`, on ? "Disable" : "Enable", s.name, api(s.name), { enabled: !on }, done,
    on && "Its tools disappear for every client until it is enabled again. Calls in flight will finish.");
}

// change shows what has changed at a tool, word by word, and the button that approves it.
function change(server, c, may, done) {
  return h("div", { class: "change" }, h("div", { class: "head" }, h("h3", { class: "clamp" }, c.tool), may && order(`approve-${c.sha256}`, "Approve", c.tool, api(server) + "/approve", { sha256: c.sha256 }, done)),
    muted(c.approved_by ? ["Approved by ", c.approved_by, ", ", when(c.approved_at), "; changed "] : "Added ", when(c.seen)),
    c.fields?.length ? c.fields.map((f) => h("p", {}, h("strong", {}, f.name), ": ", f.words.map((w) => w.change ? h(w.change === "added" ? "ins" : "del", {}, w.text) : w.text))) : h("p", {}, "The definitions are not kept. SHA-256: ", code(c.sha256)));
}

export async function server({ main, path }) {
  const name = path[0];
  const load = async () => {
    const all = await get("servers"), s = all.servers.find((x) => x.name === name);
    if (!s) throw new Error(`There is no server ${name} that your key may see.`);
    const at = encodeURIComponent(name), changed = s.changed && await get(api(name) + "/changes");
    const stderr = all.sees_stderr && s.transport === "stdio" ? (await get(api(name) + "/stderr")).lines : [];
    renew(main,
      h("p", { class: "crumbs" }, h("a", { href: "#/servers" }, "Servers")),
      h("div", { class: "head" }, h("h1", {}, name), badge(s.status),
        all.can_switch && s.status !== "disabled" && order(`restart-${name}`, "Restart", name, api(name) + "/restart", {}, load, "Its process or sessions end and start again. Calls in flight have 5 s to finish."),
        toggle(s, all.can_switch, load),
        all.can_edit && order(`remove-${name}`, "Remove", name, api(name) + "/remove", {}, (removed) => { if (removed) location.hash = "#/servers"; }, "It is taken out of the configuration, with its secrets, and its tools disappear for every client."),
        all.can_edit && h("a", { href: link(name) + "/edit" }, "Edit")),
      problem(s) && h("p", { class: "problem" }, problem(s)) || "",
      facts(["Transport", s.transport], ["Data", s.private ? "private" : ""], ["Protocol", s.protocol_version], ["In this state since", when(s.since)], ["Last healthy", s.last_healthy && when(s.last_healthy)],
        ["Breaker", s.breaker], ["Calls in flight", s.in_flight + (s.queued ? `, ${s.queued} waiting` : "")], ["Sessions", s.sessions],
        ["Latency p50 / p95", s.latency_ms.p95 ? `${ms(s.latency_ms.p50)} / ${ms(s.latency_ms.p95)}` : "no calls yet"],
        ["Tools", h("a", { href: `#/tools?server=${at}` }, count(s.tools, "tool"))],
        ["Calls in the history", h("a", { href: `#/queries?server=${at}` }, count(s.calls, "call"))],
        ["Failed", s.failed ? h("a", { href: `#/queries?failed=1&server=${at}` }, count(s.failed, "call")) : "none"],
        ["Last error", s.last_error && `${s.last_error.reason}: ${s.last_error.message}`, true]),
      changed && changed.changes.length ? h("section", {}, h("h2", {}, "Changed tools"), changed.changes.map((c) => change(name, c, changed.can_approve, load))) : "",
      s.findings ? h("section", {}, h("h2", {}, "Hidden characters"), table("Hidden characters", ["Tool", "Kind"], s.findings.map((f) => [f.tool, words(f.kind)]))) : "",
      s.quarantined_tools ? h("section", {}, h("h2", {}, "Quarantined tools"), table("Quarantined tools", ["Tool", "Reason"], s.quarantined_tools.map((q) => [q.tool || "without a name", q.reason]))) : "",
      stderr.length ? h("section", {}, h("h2", {}, "Error output"), h("pre", { tabindex: "0" }, stderr.join("\n"))) : "",
      h("section", {}, h("h2", {}, "Changes of state"), s.transitions?.length ? table("Changes of state", ["When", "State"], s.transitions.toReversed().map((t) => [when(t.at), badge(t.state, words(t.state))])) :
        muted("None since the server was configured.")));
  };
  await load();
  return { title: name, refresh: load };
}
