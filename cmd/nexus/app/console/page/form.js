// Forms for JSON Schemas: of tools and of what the router asks. What has no field of its own is written as JSON.
import { h, labelled, muted } from "./dom.js";
import { parse } from "./values.js";

const deepest = 4, most = 300; // levels and fields; what is beyond is written as JSON

// form makes fields for the properties of an object schema. read() returns the values; it throws what is wrong.
export function form(schema) {
  const group = object("", schema || {}, true, { root: schema, made: 0 }, 0, undefined);
  return { element: group.count ? group.element : muted("This tool takes no arguments."), read: group.read };
}

// plain returns a schema without reference and without the alternative null.
function plain(of, root) {
  for (let i = 0; i < 8; i++) {
    const { $ref, anyOf, oneOf, ...rest } = of && typeof of === "object" ? of : {}, one = (anyOf || oneOf)?.filter?.((x) => x?.type !== "null");
    if (typeof $ref === "string" && $ref.startsWith("#/")) of = { ...$ref.slice(2).split("/").reduce((x, part) => Object.hasOwn(Object(x), part) ? x[part] : {}, root), ...rest };
    else if (one?.length === 1 && !("const" in Object(one[0]))) of = { ...one[0], ...rest };
    else return of && typeof of === "object" ? of : {};
  }
  return {};
}

let last = 0;

// field makes the field of a value. It reads undefined if nothing is entered.
function field(name, given, required, form, depth, preset) {
  const of = plain(given, form.root), id = `field-${++last}`, type = [].concat(of.type || []).find((t) => t !== "null"), title = typeof of.title === "string" ? of.title : name;
  const value = preset === undefined ? of.default : preset, room = depth < deepest && ++form.made < most;
  if (room && type === "object" && Object.keys(of.properties || {}).length) return object(title, of, required, form, depth + 1, value);
  if (room && type === "array" && of.items && !of.prefixItems) return array(title, of, required, form, depth + 1, value);
  const common = { id, name, "aria-required": required && "true", "aria-describedby": about(of) && id + "-about" };
  const alternatives = [of.oneOf, of.anyOf].find(Array.isArray) || [];
  const choices = "const" in of ? [of.const] : Array.isArray(of.enum) ? of.enum : alternatives.map((o) => o?.const);
  const said = value === undefined || value === null ? "" : typeof value === "string" ? value : JSON.stringify(value);
  let input, convert = (text) => text;
  if (choices.length && choices.every((c) => c !== undefined)) {
    const names = of.enumNames || alternatives.map((o) => o.title);
    input = h("select", common, h("option", { value: "" }, required ? "Choose…" : "–"), choices.map((c, i) => h("option", { value: String(i), selected: value !== undefined && JSON.stringify(c) === JSON.stringify(value) }, String(names[i] || (typeof c === "string" ? c : JSON.stringify(c))))));
    convert = (text) => choices[Number(text)];
  } else if (type === "boolean") {
    input = h("select", common, h("option", { value: "" }, "–"), h("option", { value: "true", selected: value === true }, "yes"), h("option", { value: "false", selected: value === false }, "no"));
    convert = (text) => text === "true";
  } else if (type === "integer" || type === "number") {
    input = h("input", { ...common, type: "number", step: type === "integer" ? 1 : "any", min: of.minimum, max: of.maximum, value: said });
    convert = (text) => type === "integer" && /^-?\d+$/.test(text) ? parse(String(BigInt(text))) : Number(text);
  } else if (type === "string") {
    const long = (of.maxLength || 0) > 200 || /text|body|content|query|message/i.test(name);
    input = h(long ? "textarea" : "input", { ...common, maxlength: of.maxLength, minlength: of.minLength, ...long ? { rows: 3 } : { type: { email: "email", uri: "url", date: "date" }[of.format] || "text" }, value: said });
  } else {
    input = h("textarea", { ...common, rows: 3, class: "mono", spellcheck: "false", placeholder: type === "array" ? "[…]" : type === "object" ? "{…}" : "JSON", value: value === undefined ? "" : JSON.stringify(value) });
    convert = (text) => { try { return parse(text); } catch { return wrong("is not valid JSON"); } };
  }
  const wrong = (why) => { input.setAttribute("aria-invalid", "true"); input.focus(); throw new Error(`${title} ${why}`); };
  const read = () => {
    input.removeAttribute("aria-invalid");
    if (input.validity.badInput) wrong("is not a number");
    const text = input.className === "mono" ? input.value.trim() : input.value;
    if (text === "") return required ? wrong("is needed") : undefined;
    return input.validity.valid ? convert(text) : wrong(`is not valid: ${input.validationMessage}`);
  };
  return { name, read, element: labelled(id, [title, needed(required)], input, about(of)) };
}

const needed = (required) => required && h("span", { class: "muted" }, " (needed)");
const about = (of) => typeof of.description === "string" && of.description;

function object(title, of, required, form, depth, value) {
  const needs = new Set(Array.isArray(of.required) ? of.required : []), has = Object(value);
  const fields = Object.entries(of.properties || {}).map(([name, x]) => [name, field(name, x, needs.has(name), form, depth, Object.hasOwn(has, name) ? has[name] : undefined)]);
  const all = h("div", { class: "fields" }, fields.map(([, f]) => f.element));
  return { count: fields.length, element: title ? h("fieldset", {}, h("legend", {}, title, needed(required)), about(of) && muted(about(of)), all) : all, read() {
    if (!required && [...all.querySelectorAll("input, select, textarea")].every((x) => x.value === "")) return undefined;
    const values = Object.create(null); // a name may be __proto__
    for (const [name, f] of fields) {
      const v = f.read();
      if (v !== undefined) values[name] = v;
    }
    return values;
  } };
}

function array(title, of, required, form, depth, value) {
  const items = new Set(), list = h("ol", { class: "fields" });
  const append = (v) => {
    const item = field(of.items.title || "Element", of.items, true, form, depth, v);
    items.add(item);
    const li = h("li", {}, item.element, h("button", { type: "button", class: "small", "aria-label": `Remove this element of ${title}`, onclick: () => { items.delete(item); li.remove(); more.focus(); } }, "Remove"));
    list.append(li);
    return li;
  };
  const more = h("button", { type: "button", class: "small", onclick: () => append().querySelector("input, select, textarea, button").focus() }, `Add to ${title}`);
  if (Array.isArray(value)) value.slice(0, 50).forEach(append);
  return { element: h("fieldset", {}, h("legend", {}, title, needed(required)), about(of) && muted(about(of)), list, more), read() {
    return items.size || required ? [...items].map((item) => item.read()) : undefined;
  } };
}
