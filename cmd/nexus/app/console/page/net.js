// Talks to the router: JSON of api/, events, and MCP at mcp.
import { parse } from "./values.js";

const base = new URL(".", location.origin + location.pathname); // location.href may hold a password

// get reads JSON. The error says what the router says.
export async function get(path, query) {
  const url = new URL("api/" + path, base);
  for (const [k, v] of Object.entries(query || {})) if (v) url.searchParams.set(k, v);
  return answer(await send(url, { cache: "no-store" }));
}

export async function post(path, body) {
  return answer(await send(new URL("api/" + path, base),
    { method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body) }));
}

// send is fetch, with an error that says what its "Failed to fetch" means.
async function send(url, options) {
  try { return await fetch(url, options); } catch (error) {
    throw options.signal?.aborted ? error : new Error("The router cannot be reached.");
  }
}

async function answer(response) {
  const body = await json(response, {});
  if (!response.ok) throw new Error(body.error || `${response.status} ${response.statusText}`);
  return body;
}

const json = async (response, otherwise) => { try { return parse(await response.text()); } catch { return otherwise; } };

// follow calls changed for each event, and linked when the stream opens or breaks. Hidden tabs have no stream: browsers
// open at most six connections, and a seventh tab would wait for ever.
export function follow(changed, linked) {
  let source, timer, wait = 1000;
  const close = () => { clearTimeout(timer); source?.close(); source = undefined; };
  const open = () => {
    close();
    if (document.hidden) return;
    source = new EventSource(new URL("api/events", base));
    source.onopen = () => { wait = 1000; linked(true); };
    source.onmessage = (e) => changed(JSON.parse(e.data));
    source.onerror = () => {
      linked(false);
      close();
      timer = setTimeout(open, wait);
      wait = Math.min(wait * 2, 15000);
    };
  };
  open();
  document.addEventListener("visibilitychange", open);
  addEventListener("pagehide", close);
  addEventListener("pageshow", (e) => { if (e.persisted) open(); });
}

// Client is an MCP client with one session. ask answers elicitation: it gets the params and returns the result.
export class Client {
  constructor(ask) { this.ask = ask; this.id = 0; }

  async send(message, signal) {
    const headers = { "Content-Type": "application/json", Accept: "application/json, text/event-stream" };
    if (this.session) { headers["Mcp-Session-Id"] = this.session; headers["MCP-Protocol-Version"] = "2025-11-25"; }
    const response = await send(new URL("mcp", base), { method: "POST", headers, body: JSON.stringify({ jsonrpc: "2.0", ...message }), signal });
    this.session = response.headers.get("Mcp-Session-Id") || this.session;
    return response;
  }

  async open() {
    await this.request("initialize", { protocolVersion: "2025-11-25", capabilities: { elicitation: {} }, clientInfo: { name: "operations page", version: "1" } });
    await this.send({ method: "notifications/initialized" });
  }

  // request returns the result. progress gets the params of progress notifications.
  async request(method, params, progress, signal) {
    const id = ++this.id;
    if (progress) params = { ...params, _meta: { progressToken: id } };
    const response = await this.send({ id, method, params }, signal);
    let reply;
    signal?.addEventListener("abort", () => {
      if (this.session && !reply) this.send({ method: "notifications/cancelled", params: { requestId: id } }).catch(() => {});
    });
    const take = (m) => {
      if (m.id === id && !m.method) reply = m;
      else if (m.method === "notifications/progress") progress?.(m.params);
      else if (m.method && m.id !== undefined) this.serve(m);
    };
    if (!(response.headers.get("Content-Type") || "").startsWith("text/event-stream")) {
      const body = await json(response, null);
      if (body) take({ ...body, id });
      if (!response.ok && !reply?.error) throw new Error(`${response.status} ${response.statusText}`);
    } else {
      for await (const data of events(response.body)) take(parse(data));
    }
    if (!reply) throw new Error("The connection ended without an answer.");
    if (reply.error) throw new Error(reply.error.message);
    return reply.result;
  }

  // serve answers a request of the router.
  async serve(m) {
    let reply = { id: m.id, error: { code: -32601, message: "the page does not answer " + m.method } };
    if (m.method === "elicitation/create") reply = { id: m.id, result: await this.answered(m.params) };
    await this.send(reply).catch(() => {});
  }

  // answered is what the user answers; a form that cannot be shown is cancelled.
  async answered(params) {
    try { return await this.ask(params); } catch { return { action: "cancel" }; }
  }

  close() {
    if (!this.session) return;
    fetch(new URL("mcp", base), { method: "DELETE", headers: { "Mcp-Session-Id": this.session }, keepalive: true }).catch(() => {});
    this.session = undefined;
  }
}

// events yields the data of server-sent events.
async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    rest += value;
    for (let end; (end = rest.indexOf("\n\n")) >= 0; rest = rest.slice(end + 2)) {
      const data = rest.slice(0, end).split("\n").filter((l) => l.startsWith("data:")).map((l) => l.slice(5).replace(/^ /, "")).join("\n");
      if (data) yield data;
    }
  }
}
