// Values of JSON, exact to the last digit, and as tables.
import { h, code, muted, pretty, table } from "./dom.js";

// parse reads JSON. Integers that JavaScript would round are kept as they are written, also by JSON.stringify.
export const parse = (text) => JSON.parse(text, /\d{16}/.test(text) ? exact : undefined);

const exact = (_, v, at) => typeof v === "number" && !Number.isSafeInteger(v) && /^-?\d+$/.test(at?.source) ? JSON.rawJSON(at.source) : v;

// reveal writes out what cannot be seen.
const reveal = (text) => text.replace(/[\p{C}\p{Z}\u115f\u1160\u2800\u3164\uffa0]/gu, (c) => " \n\t".includes(c) ? c : `\\u{${c.codePointAt(0).toString(16)}}`);

const most = 200; // rows
const deepest = 4;

const key = (k) => /^$|[."]/.test(k) ? JSON.stringify(k) : k;

// parts lists the values in another with their names.
function parts(value, name = "", depth = 0, out = []) {
  const inner = depth < deepest && value && typeof value === "object" && !JSON.isRawJSON?.(value) ? Object.entries(value) : [];
  const list = Array.isArray(value) && !inner.some(([, v]) => v && typeof v === "object");
  if (!inner.length || list || out.length >= most) out.push([reveal(name), shown(value)]);
  else for (const [k, v] of inner) parts(v, name ? `${name}.${key(k)}` : key(k), depth + 1, out);
  return out;
}

const shown = (value) => typeof value !== "string" ? code(reveal(pretty(value) || String(value))) : value === "" ? h("span", { class: "muted" }, "(empty)") : h("span", { class: "prose" }, reveal(value));

const isObject = (value) => value && typeof value === "object" && !Array.isArray(value) && !JSON.isRawJSON?.(value);

// named shows the arguments of a call as a table.
export function named(label, value) {
  if (!isObject(value)) return h("p", {}, shown(value));
  return Object.keys(value).length ? table(label, ["Argument", "Value"], parts(value)) : muted("It has no arguments.");
}

// columns shows the arguments of several calls, one in each row, or one after the other if they do not fit.
export function columns(label, values) {
  const names = values.every(isObject) ? [...new Set(values.flatMap(Object.keys))] : [];
  if (values.length < 2 || !names.length || names.length > 4) return values.map((v, i) => named(`${label} ${i + 1}`, v));
  return table(label, ["Call", ...names.map((n) => reveal(key(n)))], values.map((v, i) => [String(i + 1), ...names.map((n) => Object.hasOwn(v, n) ? shown(v[n]) : "")]));
}
