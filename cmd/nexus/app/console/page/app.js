// Shows /healthz and asks for it again every two seconds. All of it is text: nothing of a server is markup.
"use strict";
const byID = (id) => document.getElementById(id);

// age tells since when in one unit.
function age(since) {
  const s = Math.max(0, Math.round((Date.now() - Date.parse(since)) / 1000));
  return s < 120 ? `${s} s` : s < 7200 ? `${Math.round(s / 60)} min` : `${Math.round(s / 3600)} h`;
}

// latency tells two times in milliseconds; they are 0 where no call was answered yet.
const latency = (l) => l.p95 ? [l.p50, l.p95].map((t) => t.toFixed(t < 10 ? 1 : 0)).join(" / ") + " ms" : "–";

function row(name, s) {
  const tr = document.createElement("tr");
  const error = s.last_error && s.status !== "connected" ? `${s.last_error.reason}: ${s.last_error.message}` : "";
  const breaker = s.breaker === "closed" ? "" : `calls are held back (${s.breaker}); `;
  const bad = (s.quarantined_tools || []).map((q) => `; ${q.tool || "a tool without a name"} is quarantined: ${q.reason}`).join("");
  const heads = document.querySelectorAll("th");
  const cells = [name, s.status, age(s.since), s.transport, s.tools, s.in_flight + (s.queued ? ` + ${s.queued} waiting` : ""),
    latency(s.latency_ms), (breaker + error + bad).replace(/^; /, "")];
  cells.forEach((text, i) => {
    const td = tr.insertCell();
    td.textContent = text;
    td.dataset.head = heads[i].textContent; // for narrow windows
    if (i === 1) td.className = s.status;
    if (i > 3 && i < 7) td.className = "n";
  });
  return tr;
}

async function refresh() {
  try {
    const url = new URL("../healthz", location.origin + location.pathname); // location.href may hold a password
    const answer = await fetch(url, { cache: "no-store" });
    if (!answer.ok) throw new Error(`${answer.status} ${answer.statusText}`);
    const health = await answer.json();
    byID("status").textContent = health.status;
    byID("status").className = health.status;
    byID("note").textContent = `version ${health.version}, up ${Math.round(health.uptime_seconds)} s`;
    byID("servers").replaceChildren(...Object.entries(health.servers).map(([name, s]) => row(name, s)));
  } catch (error) {
    byID("status").textContent = "";
    byID("note").textContent = `No answer: ${error.message}`;
  }
  setTimeout(refresh, 2000);
}

refresh();
