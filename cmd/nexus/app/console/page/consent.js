// Shows what the router asks consent to. Its text has a line for each part, which no server or model can forge.
import { h, code, facts, muted } from "./dom.js";
import { columns, parse } from "./values.js";

const compact = (text) => text.replace(/("(?:[^"\\]|\\.)*")|\s+/g, "$1");

// consent returns { title, nodes, destroys } of such a text; nothing if it is another.
export function consent(message) {
  const [title, ...lines] = message.split("\n");
  if (!/^Allow (this call|these \d+ calls|this request)\?$/.test(title)) return;
  const names = [], why = [], calls = [{ texts: [], notes: [] }];
  for (const line of lines) {
    const [, key, value] = /^([A-Z][a-z]+): (.*)$/s.exec(line) || [];
    const flow = /^Data of (.+) goes to (.+)\.$/.exec(line);
    if (key === "Arguments") calls.at(-1).texts.push(value);
    else if (key === "Reason") why.push(`${value[0].toUpperCase()}${value.slice(1)}`);
    else if (key) names.push([key, key === "From" ? value : code(value), value.length > 20]);
    else if (flow) why.push(["Private data of ", h("strong", {}, flow[1]), " goes to ", h("strong", {}, flow[2]), "."]);
    else if (line.startsWith("The answer also applies to")) calls.push({ texts: [], notes: [] });
    else if (/^( |…)/.test(line)) calls.at(-1).notes.push(muted(line));
    else why.push(line);
  }
  if (!why.some((w) => !/^This /.test(w))) why.unshift("The tool may change something.");
  return { title, destroys: lines.includes("This tool is marked destructive."), nodes: [facts(...names), h("h3", {}, "Why it asks"), h("ul", {}, why.map((w) => h("li", {}, w))),
    calls.map(({ texts, notes }, i) => [h("h3", {}, i ? "The answer also applies to" : "Arguments"), table(texts), notes])] };
}

// table shows the arguments of calls, given as JSON. What a table would not show as it is sent is shown as it is written.
export function table(texts) {
  const values = texts.map((text) => { try { return parse(text); } catch { return undefined; } });
  const whole = values.every((v, i) => v !== undefined && JSON.stringify(v) === compact(texts[i]));
  return whole ? columns("Arguments", values) : [values.every((v) => v !== undefined) ? columns("Arguments", values) : "", h("pre", { tabindex: "0", role: "region", "aria-label": "As it is sent" }, texts.join("\n"))];
}
