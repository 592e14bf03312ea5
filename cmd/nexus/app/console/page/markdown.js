// Shows Markdown as elements: headings, paragraphs, lists, tables, quotes, code, emphasis and links. Images become
// links. Whatever else is written, HTML too, stays text.
import { h, code } from "./dom.js";

const longest = 100_000; // characters; what follows is shown as written
const deepest = 6; // lists and quotes in each other
const widest = 32; // columns of a table

const fence = /^ {0,3}(`{3,}|~{3,})/, heading = /^ {0,3}(#{1,6})[ \t]+(.*)$/s, rule = /^ {0,3}([-*_])(?:[ \t]*\1){2,}[ \t]*$/;
const item = /^(\s*)([-*+]|\d{1,9}[.)])[ \t]+(.*)$/s, quote = /^ {0,3}> ?/, dashes = /^[\s|:-]+$/;
const blank = (line) => line.trim() === "";
const indent = (line) => line.length - line.trimStart().length;

// markdown returns the elements of a text. refer gets what stands in brackets and returns nodes, or nothing if it is text.
export function markdown(text, refer = () => undefined) {
  const cut = text.length > longest ? text.lastIndexOf("\n", longest) + 1 || longest : text.length;
  const nodes = blocks(text.slice(0, cut).replaceAll("\r\n", "\n").split("\n"), refer, 0);
  return cut < text.length ? [nodes, h("p", { class: "raw" }, text.slice(cut))] : nodes;
}

function blocks(lines, refer, depth) {
  const out = [], show = (s) => inline(s, refer, 0);
  const isTable = (i) => lines[i].includes("|") && dashes.test(lines[i + 1] || "") && /-/.test(lines[i + 1]) && lines[i + 1].includes("|") &&
    cells(lines[i + 1]).length <= widest && cells(lines[i]).length === cells(lines[i + 1]).length;
  const begins = (i) => fence.test(lines[i]) || heading.test(lines[i]) || rule.test(lines[i]) || item.test(lines[i]) || quote.test(lines[i]) || isTable(i);
  // from returns the lines from i on while these are wanted.
  const from = (i, wanted) => { let end = i; while (end < lines.length && wanted(lines[end], end)) end++; return lines.slice(i, end); };
  for (let i = 0; i < lines.length;) {
    let m, part;
    if (blank(lines[i])) { i++; continue; }
    if ((m = fence.exec(lines[i]))) {
      part = from(i + 1, (l) => !(l.trimStart().startsWith(m[1]) && blank(l.trimStart().replaceAll(m[1][0], ""))));
      out.push(h("pre", { tabindex: "0" }, part.join("\n")));
      i += part.length + 2;
    } else if ((m = heading.exec(lines[i]))) {
      out.push(h(`h${Math.min(6, m[1].length + 2)}`, {}, show(m[2].replace(/\s#+$/, ""))));
      i++;
    } else if (rule.test(lines[i])) {
      out.push(h("hr"));
      i++;
    } else if (isTable(i)) {
      part = from(i, (l) => l.includes("|"));
      const [heads, , ...rows] = part.map((l) => cells(l).map(show));
      out.push(h("div", { class: "scroll", tabindex: "0" }, h("table", {}, h("thead", {}, h("tr", {}, heads.map((c) => h("th", { scope: "col" }, c)))),
        h("tbody", {}, rows.map((r) => h("tr", {}, r.slice(0, heads.length).map((c) => h("td", {}, c))))))));
      i += part.length;
    } else if (quote.test(lines[i]) && depth < deepest) {
      part = from(i, (l) => quote.test(l));
      out.push(h("blockquote", {}, blocks(part.map((l) => l.replace(quote, "")), refer, depth + 1)));
      i += part.length;
    } else if ((m = item.exec(lines[i])) && depth < deepest) {
      const own = m[1].length, numbers = /\d/.test(m[2]), items = [];
      for (let n; i < lines.length && (n = item.exec(lines[i])) && n[1].length <= own + 1 && /\d/.test(n[2]) === numbers;) {
        const width = n[0].length - n[3].length;
        part = from(i + 1, (l, at) => blank(l) ? at + 1 < lines.length && indent(lines[at + 1]) > n[1].length && !blank(lines[at + 1]) : indent(l) > n[1].length + 1 || !begins(at) && !blank(lines[at - 1]));
        items.push(h("li", {}, blocks([n[3], ...part.map((l) => l.slice(Math.min(indent(l), width)))], refer, depth + 1)));
        i += part.length + 1;
        if (i + 1 < lines.length && blank(lines[i]) && item.test(lines[i + 1])) i++;
      }
      out.push(h(numbers ? "ol" : "ul", { start: numbers && parseInt(m[2], 10) !== 1 && parseInt(m[2], 10) }, items));
    } else {
      part = from(i, (l, at) => at === i || !blank(l) && !begins(at));
      out.push(h("p", {}, show(part.map((l) => l.trim()).join("\n"))));
      i += part.length;
    }
  }
  return out;
}

const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((c) => c.trim().replaceAll("\\|", "|"));

// Each alternative reads a character a bounded number of times, whatever the text is.
const token = /\\([\\`*_{}[\]()#+\-.!|<>~])|``(.+?)``(?!`)|`([^`]+)`|!?\[([^[\]]*)\]\(\s?<?((?:[^\s()<>]|\([^\s()<>]*\))*)>?(?:\s"[^"]*")?\s?\)|\[([^[\]]{1,200})\]|<?(https?:\/\/[^\s<>"'`|*[\]]+)>?|(\*{1,3}|__?|~~)/gs;
const tags = { "***": "strong", "**": "strong", "__": "strong", "*": "em", "_": "em", "~~": "del" };

// inline returns the nodes of a line or paragraph.
function inline(text, refer, depth) {
  const open = [{ nodes: [] }], add = (...nodes) => open.at(-1).nodes.push(...nodes);
  const unwrap = () => { const last = open.pop(); add(last.mark); for (const n of last.nodes) add(n); };
  let at = 0;
  for (const m of text.matchAll(token)) {
    add(text.slice(at, m.index));
    at = m.index + m[0].length;
    const [whole, escaped, code2, code1, label, href, brackets, bare, mark] = m;
    if (escaped) add(escaped);
    else if (code2 || code1) add(code((code2 || code1).trim()));
    else if (href !== undefined) add(...!depth && link(href, inline(label, refer, 1), label) || [whole]);
    else if (brackets) add(...refer(brackets) || ["[", ...inline(brackets, refer, depth), "]"]);
    else if (bare) {
      let end = bare.length;
      while (".,;:!?".includes(bare[end - 1]) || bare[end - 1] === ")" && !bare.includes("(")) end--;
      const url = bare.slice(0, end);
      add(...!depth && link(url, [url], url) || [url], whole[0] === "<" ? "" : bare.slice(end));
    } else {
      const before = text[m.index - 1] || " ", after = text[at] || " ", i = open.findLastIndex((o) => o.mark === mark), word = /[\p{L}\p{N}]/u;
      if (i > 0 && /\S/.test(before) && !(mark[0] === "_" && word.test(after))) {
        while (open.length > i + 1) unwrap();
        const { nodes } = open.pop();
        add(h(tags[mark], {}, mark.length === 3 ? h("em", {}, nodes) : nodes));
      } else if (i < 0 && /\S/.test(after) && !(mark[0] === "_" && word.test(before))) open.push({ mark, nodes: [] });
      else add(mark);
    }
  }
  add(text.slice(at));
  while (open.length > 1) unwrap();
  return open[0].nodes;
}

// link returns a link with the host that it leads to, or nothing if a browser would not just open it.
function link(href, nodes, label) {
  let url;
  try { url = new URL(href); } catch { return; }
  if (!["http:", "https:", "mailto:"].includes(url.protocol) || url.username || url.password) return;
  const a = h("a", { href: url.href, rel: "noreferrer noopener", target: "_blank" }, label.trim() ? nodes : url.href);
  const host = url.host || url.pathname;
  return [[url.href, host].includes(label) || label + "/" === url.href ? a : [a, h("span", { class: "muted" }, ` (${host})`)]];
}
