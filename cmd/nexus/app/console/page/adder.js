// Adds a server to the configuration, after it has been tried.
import { h, badge, code, count, empty, labelled, muted, options, put, say, table, wrong } from "./dom.js";
import { get, post } from "./net.js";
import { copied } from "./start.js";

export async function adder({ main }) {
  const all = await get("servers");
  if (!all.can_edit) {
    put(main, h("h1", {}, "Add a server"), empty("The configuration cannot be changed here.", "Only a key with ", code("edit: true"), " and without limits can, where the configuration is one folder of this router alone. On its machine:"), copied("nexus server add NAME --url URL"));
    return { title: "Add a server" };
  }
  const out = h("div", { "aria-live": "polite" });
  const field = (label, name, props, about) => labelled("new-" + name, label, h(props.rows ? "textarea" : "input", { id: "new-" + name, name, autocomplete: "off", spellcheck: "false", ...props, "aria-describedby": about && `new-${name}-about` }), about);
  const url = [field("Address", "url", { type: "url", placeholder: "https://host/mcp" }, "A path that ends in /sse means HTTP+SSE."), pairs("Headers", "Authorization")];
  const command = [field("Command", "command", { rows: 4, class: "mono", placeholder: "npx\n-y\n@modelcontextprotocol/server-filesystem\n/data" }, "The program, and each of its arguments, on a line of its own."), pairs("Environment variables", "API_KEY")];
  const parts = { url: h("div", { class: "fields" }, url.map((x) => x.element || x)), command: h("div", { class: "fields", hidden: true }, command.map((x) => x.element || x)) };
  const kind = h("select", { id: "new-kind", onchange: () => { for (const k in parts) parts[k].hidden = k !== kind.value; } }, options([["url", "a server at an address"], ["command", "a command on the router's machine"]]));
  const buttons = [h("button", { class: "primary", value: "try" }, "Try"), h("button", { value: "add" }, "Add")];
  const send = async (e) => {
    e.preventDefault();
    const f = new FormData(e.target), isTry = e.submitter?.value !== "add", lines = (f.get("command") || "").split("\n").map((x) => x.trim()).filter(Boolean);
    const order = { name: f.get("name"), private: f.has("private"), try: isTry, ...kind.value === "url" ? { url: f.get("url"), headers: url[1].read() } : { command: lines, env: command[1].read() } };
    for (const b of buttons) b.disabled = true;
    put(out, muted(isTry ? "Trying; a command may have to be downloaded first…" : "Adding…"));
    try {
      const answer = await post("servers", order);
      if (isTry) put(out, tried(answer.tools, "Nothing is added yet."));
      else {
        e.target.reset();
        put(out, h("p", {}, badge("ok", "added"), " ", h("a", { href: "#/servers" }, "See the servers")), answer.warnings?.map((x) => muted(x)), answer.warning && wrong(answer.warning));
      }
      say(isTry ? "The server works" : "The server is added");
    } catch (error) { put(out, wrong(error.message)); }
    for (const b of buttons) b.disabled = false;
  };
  put(main, h("p", { class: "crumbs" }, h("a", { href: "#/servers" }, "Servers")), h("h1", {}, "Add a server"),
    h("form", { class: "fields", id: "adder", onsubmit: send }, field("Name", "name", { required: true, maxlength: 64 }, "Letters, digits, - and single _ inside."), labelled("new-kind", "It is", kind), parts.url, parts.command,
      h("label", { class: "choice" }, h("input", { type: "checkbox", name: "private" }), " Its results are confidential: they go to other servers only with consent"),
      muted("Values of headers and variables go to secrets.env beside the configuration, and are not shown again."), h("p", { class: "buttons" }, buttons)), out);
  return { title: "Add a server" };
}

// tried shows the tools of a server that has been tried.
export const tried = (tools, note) => [h("p", {}, badge("ok", "it works"), ` ${count(tools.length, "tool")}. ${note}`), tools.length && table("Tools", ["Tool", "Description"], tools.map((t) => [t.name, t.description]))];

// pairs makes rows for names and secret values.
function pairs(title, example) {
  const list = h("div", { class: "fields" });
  const more = () => {
    const row = h("div", { class: "pair" }, h("input", { "aria-label": "Name", placeholder: example, autocomplete: "off", spellcheck: "false" }), h("input", { "aria-label": "Value", type: "password", autocomplete: "new-password" }),
      h("button", { type: "button", class: "small", "aria-label": "Remove this row", onclick: () => { row.remove(); button.focus(); } }, "Remove"));
    list.append(row);
    row.querySelector("input").focus();
  };
  const button = h("button", { type: "button", class: "small", onclick: more }, "Add a row");
  return { element: h("fieldset", {}, h("legend", {}, title), list, button), read: () => Object.fromEntries([...list.children].map((row) => [...row.querySelectorAll("input")].map((x) => x.value)).filter(([name]) => name)) };
}
