// Shows the view that the address names, and has it renewed when something changes.
import { h, empty, say, put } from "./dom.js";
import { follow } from "./net.js";
import { now } from "./now.js";
import { servers, server } from "./servers.js";
import { tools, tool } from "./tools.js";
import { queries } from "./queries.js";
import { query } from "./query.js";
import { ask } from "./ask.js";
import { sessions, models } from "./others.js";
import { access } from "./access.js";
import { adder } from "./adder.js";
import { editor } from "./editor.js";

// A view gets { main, path, params } and returns { title, refresh(change), leave() }, all optional but the title.
const views = { __proto__: null,
  now: () => now, servers: (p) => p[0] === "+" ? adder : p[1] ? editor : p[0] ? server : servers, tools: (p) => p.length > 1 ? tool : tools,
  queries: (p) => p[0] ? query : queries, ask: () => ask, sessions: () => sessions, models: () => models, access: (p) => p[0] ? editor : access,
};

const main = document.getElementById("main");
let current = {}, shown = "", first = true;

async function route() {
  const [address, search] = location.hash.replace(/^#\/?/, "").split("?");
  const [name, ...path] = address.split("/").filter(Boolean).map((part) => { try { return decodeURIComponent(part); } catch { return part; } });
  const view = (views[name] || views.now)(path);
  const params = new URLSearchParams(search);
  const same = view.within?.(shown, path);
  shown = location.hash;
  for (const a of document.querySelectorAll("#nav a")) {
    const on = a.hash === "#/" + (views[name] ? name : "now");
    on ? a.setAttribute("aria-current", "page") : a.removeAttribute("aria-current");
  }
  if (same && current.move) { current.move(path, params); document.body.dataset.view = shown; return; }
  current.leave?.();
  const mine = current = {};
  const place = h("div", { class: "view" });
  try {
    const made = await view({ main: place, path, params });
    if (current !== mine) return made.leave?.();
    Object.assign(mine, made);
    document.title = made.title + " · AgenticNexus";
  } catch (error) {
    if (current !== mine) return;
    mine.failed = true;
    put(place, h("h1", {}, "Nothing to show"), empty(error.message, "Go ", h("a", { href: "#/now" }, "back to the start"), ", or reload the page."));
  }
  put(main, place);
  if (!first) { scrollTo(0, 0); main.focus({ preventScroll: true }); say(document.title); }
  first = false;
  mine.shown?.();
  document.body.dataset.view = shown;
  mine.ready = true;
  refresh(); // of what has changed while the view was made
}

// Refreshes come one at a time, at most once a second; the last one counts.
let change = null, busy = false;
async function refresh() {
  if (busy || !change || !current.ready) return;
  busy = true;
  const next = change, mine = current;
  change = null;
  try { await mine.refresh?.(next); } catch { /* the next change tries again */ }
  setTimeout(() => { busy = false; refresh(); }, 1000);
}

let seen = "";
addEventListener("hashchange", route);
document.getElementById("skip").addEventListener("click", (e) => { e.preventDefault(); main.focus(); });
const link = document.getElementById("link");
follow((c) => {
  if (seen === "") seen = JSON.stringify(c); // what the view has just read
  else { seen = JSON.stringify(c); change = c; refresh(); }
}, (on) => {
  if (on && current.failed) route(); // what could not be read may be there now
  link.textContent = on ? "Live" : "No connection; the page may be out of date";
  link.className = on ? "good" : "bad";
  document.body.dataset.live = on;
});
route().then(() => { document.body.dataset.ready = "true"; });
