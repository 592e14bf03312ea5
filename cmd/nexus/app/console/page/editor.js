// Edits a part of the configuration as it is written: a server, the profiles or the policy.
import { h, badge, code, labelled, muted, put, say, wrong } from "./dom.js";
import { get, post } from "./net.js";
import { tried } from "./adder.js";

const examples = {
  policy: "policy:\n  - when: destructive && source == \"model\"\n    then: ask\n    reason: models do not delete\n",
  profiles: "profiles:\n  support:\n    servers: [hr]\n",
};
const hints = {
  server: ["Credentials are better in secrets.env: write ", code("${NAME}"), " here, and NAME=value there."],
  profiles: "Profiles change when the router starts again.",
};
const drafts = new Map(); // texts that are not saved; other views may be shown meanwhile

export async function editor({ main, path }) {
  const server = path[1] && path[0], block = server ? `blocks/servers/${encodeURIComponent(server)}` : `blocks/${path[0]}`;
  const kind = server ? "server" : path[0], name = path[0], out = h("div", { "aria-live": "polite" }), up = server ? [`#/servers/${encodeURIComponent(server)}`, server] : ["#/access", "Access"];
  let { text: was, file } = await get(block);
  const draft = drafts.get(block);
  const text = h("textarea", { id: "text", class: "mono", rows: Math.min(30, Math.max(8, was.split("\n").length + 1)), wrap: "off", spellcheck: "false", autocomplete: "off", placeholder: examples[kind], "aria-describedby": hints[kind] && "text-about", value: draft?.was === was ? draft.text : was,
    oninput: () => drafts.set(block, { was, text: text.value }) });
  const buttons = [h("button", { value: "check" }, "Check"), server && h("button", { value: "try" }, "Try"), h("button", { class: "primary", value: "save" }, "Save")];
  const send = async (e) => {
    e.preventDefault();
    const order = e.submitter?.value || "check";
    for (const b of buttons) if (b) b.disabled = true;
    text.removeAttribute("aria-invalid");
    put(out, muted({ check: "Checking…", try: "Trying; a command may have to be downloaded first…", save: "Saving…" }[order]));
    try {
      const answer = await post(block, { was, text: text.value, do: order });
      if (answer.mistake) throw new Error(answer.mistake);
      if (order === "try") put(out, tried(answer.tools, "Nothing is saved yet."));
      else if (order === "check") put(out, h("p", {}, badge("ok", "valid"), " Nothing is saved yet."), difference(answer.diff), answer.warnings?.map((x) => muted(x)));
      else {
        drafts.delete(block);
        put(out, h("p", {}, badge("ok", "saved"), answer.warning ? "" : " It is in force."), answer.warning && wrong(answer.warning));
        text.value = was = (await get(block)).text;
      }
      say(out.textContent);
    } catch (error) {
      put(out, wrong(error.message));
      mark(text, Number(/^line (\d+): /.exec(error.message)?.[1]));
    }
    for (const b of buttons) if (b) b.disabled = false;
  };
  put(main, h("p", { class: "crumbs" }, h("a", { href: up[0] }, up[1])), h("h1", {}, `Edit ${name}`),
    h("form", { class: "fields wide", id: "editor", onsubmit: send },
      labelled("text", `${name} in ${file}`, text, hints[kind]),
      h("p", { class: "buttons" }, buttons)), out);
  return { title: `Edit ${name}` };
}

// mark selects the line that is wrong.
function mark(text, line) {
  if (!line) return;
  const lines = text.value.split("\n"), from = lines.slice(0, line - 1).join("\n").length + (line > 1);
  text.setAttribute("aria-invalid", "true");
  text.focus();
  text.setSelectionRange(from, from + (lines[line - 1] || "").length);
}

// difference shows lines that begin with "-" or "+" if they were removed or added.
function difference(diff) {
  const lines = diff.split("\n").slice(0, -1);
  return lines.some((x) => /^[-+]/.test(x)) ? h("pre", { tabindex: "0", role: "region", "aria-label": "Difference" }, lines.map((x) => [h({ "-": "del", "+": "ins" }[x[0]] || "span", {}, x), "\n"])) : muted("It is as it was.");
}
