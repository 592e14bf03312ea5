// The sessions of clients, and the models.
import { h, badge, caller, code, count, empty, facts, muted, renew, span, table, when } from "./dom.js";
import { get } from "./net.js";

export async function sessions({ main }) {
  const load = async () => {
    const all = await get("sessions");
    renew(main, h("h1", {}, "Sessions"), muted(count(all.total, "client session") + (all.total > all.sessions.length ? `, the ${all.sessions.length} used last are shown` : "")),
      all.sessions.length ? table("Client sessions", ["Client", "Caller", "Path", "Protocol", "#Idle", "Activity"], all.sessions.map((x) => [
        [h("span", { class: "name cut" }, x.client || "without a name"), h("div", { class: "note" }, [x.client_version, x.id].filter(Boolean).join(" · "))], caller(x.caller), x.path || "a stream of its own", x.protocol_version, span(x.idle_seconds),
        x.in_flight ? badge("connecting", "request in flight") : x.attached ? badge("ok", "listening") : badge("disabled", "idle")])) :
        empty("No client has a session.", "Clients connect to ", code(location.origin + "/mcp"), ". Clients of protocol version 2026-07-28 have no sessions; their queries are under ", h("a", { href: "#/queries" }, "Queries"), "."));
  };
  await load();
  return { title: "Sessions", refresh: load };
}

export async function models({ main }) {
  const load = async () => {
    const all = await get("models");
    renew(main, h("h1", {}, "Models"), all.models.length ? h("div", { class: "cards" }, all.models.map(card)) :
      empty("No model is configured.", all.client_models ? "The router uses the models of clients that offer sampling." : "Rules plan, and answers are digests of the results. To use a model, add ", code("llm: {planner: {base_url: …, model: …}}"), " to settings.yaml and restart."),
    all.models.length ? muted("Tokens and cost cover the queries in the history", all.models.some((m) => m.cost !== undefined) ? "." : "; set prices in settings.yaml to see the cost.") : "");
  };
  await load();
  return { title: "Models", refresh: load };
}

const card = (m) => h("section", { class: "tile" }, h("div", { class: "head" }, h("h2", {}, m.model), m.status ? badge({ ok: "ok", unknown: "unknown" }[m.status.state] || "bad", m.status.state === "unknown" ? "not used yet" : m.status.state) : m.host ? "" : badge("unknown", "of a client, or no longer configured")),
  m.status?.last_error ? h("p", { class: "problem" }, m.status.last_error) : "",
  facts(["Used as", m.for], ["Endpoint", m.host && code(m.host)], ["API", m.api], ["Last success", m.status?.last_ok && when(m.status.last_ok)], ["Breaker", m.status?.breaker],
    ["Requests", m.calls.toLocaleString()], ["Tokens in", m.input_tokens.toLocaleString()], ["Tokens out", m.output_tokens.toLocaleString()], ["Cost", m.cost !== undefined ? m.cost.toFixed(4) : ""]));
