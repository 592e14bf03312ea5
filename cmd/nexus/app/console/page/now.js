// The first view: what needs attention, then how much runs.
import { h, ago, badge, caller, code, count, ms, muted, renew, s, section, span, table, when } from "./dom.js";
import { get } from "./net.js";
import { questions, start } from "./start.js";

export async function now({ main }) {
  const load = async () => {
    const n = await get("now"), quiet = !sum(n.series.queries) && !sum(n.series.calls);
    const fresh = !n.servers || quiet && !(await get("queries", { limit: 1 })).entries.length;
    const tries = fresh && n.servers ? await questions() : [];
    renew(main, ...parts(n, fresh && start(n, tries)));
  };
  await load();
  return { title: "Now", refresh: load };
}

const sum = (list) => list.reduce((a, b) => a + b, 0);

function parts(n, first) {
  const q = sum(n.series.queries), c = sum(n.series.calls), e = sum(n.series.calls_failed), f = sum(n.series.queries_failed);
  return [
    h("h1", {}, "Now"),
    h("p", { class: "lead" }, badge(n.status === "healthy" ? "ok" : n.status === "degraded" ? "warn" : "bad", n.status), " ",
      n.servers ? `${n.connected} of ${count(n.servers, "server")} connected` : "no servers", `, up ${span(n.uptime_seconds)}, version ${n.version}`),
    first,
    n.servers > 0 && attention(n),
    n.cluster && replicas(n.cluster),
    n.live.length > 0 && section("live", "Running queries", live(n.live)),
    n.failures.length > 0 && section("failures", "Latest queries with problems",
      h("ul", { class: "rows" }, n.failures.map((x) => h("li", {}, h("a", { class: "row", href: `#/queries/${x.id}` },
        badge(x.outcome), h("span", { class: "grow cut" }, x.text || "a question whose text is not kept"), failed(x), h("span", { class: "muted" }, ago(x.at))))))),
    section("rates", "The last hour",
      h("div", { class: "tiles" },
        chart("Queries", q.toLocaleString(), f ? `${f.toLocaleString()} with problems` : "none with problems", n.series.queries, n.series.queries_failed),
        chart("Tool calls", c.toLocaleString(), e ? `${e.toLocaleString()} failed` : "none failed", n.series.calls, n.series.calls_failed),
        chart("Time of queries, p95", q ? ms(worst(n.series.p95_ms)) : "–", q ? `median ${ms(worst(n.series.p50_ms))} in the slowest minute` : "no queries", n.series.p95_ms),
        h("div", { class: "tile" }, h("h3", {}, "At this moment"), h("dl", { class: "mini" },
          h("div", {}, h("dt", {}, "calls in flight"), h("dd", {}, n.in_flight)), h("div", {}, h("dt", {}, "client sessions"), h("dd", {}, h("a", { href: "#/sessions" }, n.sessions))),
          h("div", {}, h("dt", {}, "running queries"), h("dd", {}, n.live.length)))))),
    !first && q + c === 0 && muted("No queries or calls in this time."),
    n.history.dropped > 0 && muted(`${count(n.history.dropped, "entry", "entries")} could not be recorded, because the disk is too slow.`),
    n.history.off && muted("No history is kept; set history.entries above 0 to see queries and rates."),
  ].filter(Boolean);
}

const replicas = (c) => section("replicas", "Replicas",
  muted(`cluster ${c.name}, seen by ${c.replica}; NATS is ${c.nats}`),
  table("Replicas", ["Name", "Address", "Version", "#Sessions", "Since", "State"], c.replicas.map((r) => [
    r.name, code(r.address), r.version, r.sessions, when(r.since), r.draining ? badge("warn", "draining") : badge("ok", "serving")])));

const worst = (list) => Math.max(0, ...list);

const failed = (x) => {
  const bad = (x.uses || []).filter((u) => u.failed).map((u) => u.tool);
  return bad.length > 0 && h("span", { class: "muted cut" }, bad.join(", "));
};

function attention(n) {
  return section("attention", "Needs attention",
    n.attention.length === 0 ? h("p", { class: "calmbox" }, badge("ok", "all well"), " Nothing needs attention.") :
      h("ul", { class: "rows" }, n.attention.map((a) => h("li", {}, h("a", { class: `row ${a.severity}`, href: a.link }, badge(a.severity, a.severity === "bad" ? "problem" : "warning"),
        h("strong", { class: "subject cut", title: a.subject }, a.subject), h("span", { class: "grow" }, a.text), a.since && h("span", { class: "muted" }, ago(a.since)))))));
}

// live lists running queries with their progress.
export function live(list) {
  return h("ul", { class: "rows" }, list.map((l) => h("li", { class: "row" }, h("progress", { max: 1, value: l.progress, "aria-label": "Progress" }),
    h("span", { class: "grow" }, l.text || "a question whose text is not kept", h("br"), h("span", { class: "muted" }, l.message || "")),
    h("span", { class: "muted" }, caller(l.caller), ", since ", when(l.at)))));
}

// chart draws a bar for each minute, with the failed part at its foot.
function chart(title, value, note, all, failed) {
  const top = Math.max(1, ...all), width = 240, height = 44, w = width / all.length;
  const bars = (list, name) => s("path", { class: name, d: list.map((v, i) => v && `M${(i * w).toFixed(1)} ${height}v${(-Math.max(1.5, v / top * height)).toFixed(1)}h${(w - 1).toFixed(1)}V${height}z`).filter(Boolean).join("") });
  return h("div", { class: "tile" }, h("h3", {}, title), h("p", { class: "big" }, value), muted(note),
    s("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title} in each of the last 60 minutes, ${top.toLocaleString()} at most`, preserveAspectRatio: "none", class: "chart" },
      s("path", { class: "floor", d: `M0 ${height - 0.5}H${width}` }), bars(all, "all"), failed && bars(failed, "failed")),
    h("p", { class: "ticks" }, h("span", {}, "an hour ago"), h("span", {}, "now")));
}
