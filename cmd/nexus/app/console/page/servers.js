// The servers: all of them, or one.
import { h, table, badge, ago, count, empty, facts, ms, when, words, renew } from "./dom.js";
import { get, post } from "./net.js";

const link = (name) => `#/servers/${encodeURIComponent(name)}`;

export async function servers({ main, params }) {
  const only = params.get("state"), wanted = (s) => !only || s.status === only;
  const show = (all) => renew(main, h("div", { class: "head" }, h("h1", {}, "Servers"), all.can_edit && h("a", { href: "#/servers/+" }, "Add a server")), states(all.servers, only), all.servers.length === 0 ?
    empty("There are no servers that your key may see.", "Add some to ", h("code", {}, "servers.yaml"), "; the router takes them over while it runs.") :
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
  if (!may) return "";
  return h("button", { type: "button", class: "small", id: `switch-${s.name}`, "aria-label": `${on ? "Disable" : "Enable"} ${s.name}`, onclick: async () => {
    if (on && !await sure(`Disable ${s.name}?`, "Its tools disappear for every client until it is enabled again. Calls in flight will finish.", "Disable")) return;
    try {
      const answer = await post(`servers/${encodeURIComponent(s.name)}`, { enabled: !on });
      if (answer.warning) await sure("Changed until the router stops", answer.warning, "OK");
    } catch (error) { await sure("Not done", error.message, "OK"); }
    await done();
    document.getElementById(`switch-${s.name}`)?.focus();
  } }, on ? "Disable" : "Enable");
}

// again is the button that restarts a server.
function again(s, may, done) {
  if (!may || s.status === "disabled") return "";
  return h("button", { type: "button", class: "small", id: `restart-${s.name}`, "aria-label": `Restart ${s.name}`, onclick: async () => {
    if (!await sure(`Restart ${s.name}?`, "Its process or sessions end and start again. Calls in flight have 5 s to finish.", "Restart")) return;
    try { await post(`servers/${encodeURIComponent(s.name)}/restart`, {}); } catch (error) { await sure("Not done", error.message, "OK"); }
    await done();
  } }, "Restart");
}

// remover is the button that takes a server out of the configuration.
const remover = (name) => h("button", { type: "button", class: "small", id: `remove-${name}`, "aria-label": `Remove ${name}`, onclick: async () => {
  if (!await sure(`Remove ${name}?`, "It is taken out of the configuration, with its secrets, and its tools disappear for every client.", "Remove")) return;
  try { await post(`servers/${encodeURIComponent(name)}/remove`, {}); await taken(() => { location.hash = "#/servers"; }); } catch (error) { await sure("Not done", error.message, "OK"); }
} }, "Remove");

// taken waits until the router has taken a change of its configuration over.
export async function taken(done) {
  await new Promise((r) => setTimeout(r, 2000));
  await done();
}

// change shows what has changed at a tool, word by word, and the button that approves it.
function change(server, c, may, done) {
  const approve = async () => {
    try {
      const answer = await post(`servers/${encodeURIComponent(server)}/approve`, { sha256: c.sha256 });
      if (answer.warning) await sure("Approved until the router stops", answer.warning, "OK");
    } catch (error) { await sure("Not done", error.message, "OK"); }
    await done();
  };
  return h("div", { class: "change" }, h("div", { class: "head" }, h("h3", { class: "clamp" }, c.tool), may && h("button", { type: "button", class: "small", id: `approve-${c.sha256}`, "aria-label": `Approve ${c.tool}`, onclick: approve }, "Approve")),
    h("p", { class: "muted" }, c.approved_by ? ["Approved by ", c.approved_by, ", ", when(c.approved_at), "; changed "] : "Added ", when(c.seen)),
    c.fields?.length ? c.fields.map((f) => h("p", {}, h("strong", {}, f.name), ": ", f.words.map((w) => w.change ? h(w.change === "added" ? "ins" : "del", {}, w.text) : w.text))) : h("p", {}, "The definitions are not kept. SHA-256: ", h("code", {}, c.sha256)));
}

// sure asks in a dialog.
export function sure(title, text, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "sure", onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("form", { method: "dialog" }, h("h2", { id: "sure" }, title), typeof text === "string" ? h("p", {}, text) : text, h("p", { class: "buttons" },
        h("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel"),
        h("button", { type: "button", class: "primary", onclick: () => dialog.close("yes") }, yes))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

export async function server({ main, path }) {
  const name = path[0];
  const load = async () => {
    const all = await get("servers"), s = all.servers.find((x) => x.name === name);
    if (!s) throw new Error(`There is no server ${name} that your key may see.`);
    const at = encodeURIComponent(name), changed = s.changed && await get(`servers/${at}/changes`);
    const stderr = all.sees_stderr && s.transport === "stdio" ? (await get(`servers/${at}/stderr`)).lines : [];
    renew(main,
      h("p", { class: "crumbs" }, h("a", { href: "#/servers" }, "Servers")),
      h("div", { class: "head" }, h("h1", {}, name), badge(s.status), again(s, all.can_switch, load), toggle(s, all.can_switch, load), all.can_edit && remover(name)),
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
        h("p", { class: "muted" }, "None since the server was configured.")));
  };
  await load();
  return { title: name, refresh: load };
}
