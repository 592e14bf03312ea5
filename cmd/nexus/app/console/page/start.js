// The first steps: a server, a client and a question.
import { h, code, say, section } from "./dom.js";
import { get } from "./net.js";

// copied shows a text with a button that copies it.
export function copied(text) {
  const place = code(text);
  return h("p", { class: "copied" }, place, h("button", { type: "button", class: "small", "aria-label": `Copy ${text}`, onclick: async () => {
    try { await navigator.clipboard.writeText(text); say("Copied"); } catch { getSelection().selectAllChildren(place); say("The text is selected; copy it"); }
  } }, "Copy"));
}

// questions returns some that fit the tools; a tool asks for what such a question leaves out.
export async function questions() {
  const { tools } = await get("tools").catch(() => ({ tools: [] }));
  const demo = { __proto__: null, calculate: "What is 15% of 2500?", web_search: "What are the latest news about Go?", query_hr: "Who works in Engineering?" };
  return tools.filter((t) => t.reads && t.description).slice(0, 3).map((t) => demo[t.tool] || /^[^.:\n]{1,120}/.exec(t.description)?.[0] || t.tool);
}

// start shows what is to do. n is the state of the router, tries are questions.
export function start(n, tries) {
  const url = location.origin + "/mcp", step = (title, ...parts) => h("li", {}, h("h3", {}, title), parts);
  return section("start", "First steps", h("ol", { class: "steps" },
    n.servers === 0 && step("Connect a server", h("p", {}, "Take over those of a client that you use, or add one on a terminal or ", h("a", { href: "#/servers/+" }, "here"), "; the router sees the change while it runs."),
      copied("nexus client import claude-code"), copied("nexus server add files -- npx -y @modelcontextprotocol/server-filesystem /data"),
      h("p", {}, "Or try the built-in ones:"), copied("nexus serve --demo")),
    step("Connect a client", h("p", {}, "On this machine, ", code("nexus client list"), " shows which clients there are. Give the client ", n.keyed ? "the address and a key:" : "the address:"),
      copied(`${n.keyed ? "NEXUS_API_KEY=KEY " : ""}nexus client add claude-code --url ${location.origin}`),
      h("p", {}, "Any other client of MCP takes the address", n.keyed && [" and the header ", code("Authorization: Bearer KEY")], " itself:"), copied(url)),
    n.servers > 0 && step("Ask a question", h("p", {}, "Here or in the client, for example:"),
      h("ul", {}, tries.map((q) => h("li", {}, h("a", { href: "#/ask?q=" + encodeURIComponent(q) }, q))), h("li", {}, h("a", { href: "#/ask" }, "one of your own"))))));
}
