// Forms for JSON Schemas: of tools and of what the router asks.
import { h } from "./dom.js";

// form makes fields for the properties of an object schema. read() returns the values; it throws what is wrong.
export function form(schema) {
  const required = new Set(schema?.required || []);
  const fields = Object.entries(schema?.properties || {}).map(([name, of]) => field(name, of || {}, required.has(name)));
  return {
    element: h("div", { class: "fields" }, fields.length ? fields.map((f) => f.element) : h("p", { class: "muted" }, "This tool takes no arguments.")),
    read() {
      const values = Object.create(null); // a parameter may be called __proto__
      for (const f of fields) {
        const v = f.read();
        if (v !== undefined) values[f.name] = v;
      }
      return values;
    },
  };
}

let made = 0;

function field(name, of, required) {
  const id = `field-${++made}`, type = [].concat(of.type || [])[0];
  const common = { id, name, required, "aria-describedby": of.description ? id + "-about" : undefined };
  const choices = of.enum || (of.oneOf || []).filter((o) => "const" in o).map((o) => o.const);
  let input, read;
  if (choices.length) {
    input = h("select", common, h("option", { value: "" }, required ? "Choose…" : "–"), choices.map((c, i) => h("option", { value: String(i), selected: c === of.default }, of.enumNames?.[i] || of.oneOf?.[i]?.title || String(c))));
    read = () => input.value === "" ? undefined : choices[Number(input.value)];
  } else if (type === "boolean") {
    input = h("select", common, h("option", { value: "" }, "–"), h("option", { value: "true", selected: of.default === true }, "yes"), h("option", { value: "false", selected: of.default === false }, "no"));
    read = () => input.value === "" ? undefined : input.value === "true";
  } else if (type === "integer" || type === "number") {
    input = h("input", { ...common, type: "number", step: type === "integer" ? 1 : "any", min: of.minimum, max: of.maximum, value: of.default ?? "" });
    read = () => input.value === "" ? undefined : Number(input.value);
  } else if (type === "string" || !type) {
    const long = (of.maxLength || 0) > 200 || /text|body|content|query|message/i.test(name);
    input = long ? h("textarea", { ...common, rows: 3, value: of.default ?? "" }) :
      h("input", { ...common, type: { email: "email", uri: "url", date: "date" }[of.format] || "text", value: of.default ?? "" });
    read = () => input.value === "" ? undefined : input.value;
  } else {
    input = h("textarea", { ...common, rows: 3, class: "mono", placeholder: type === "array" ? "[…]" : "{…}", value: of.default === undefined ? "" : JSON.stringify(of.default) });
    read = () => {
      if (input.value.trim() === "") return undefined;
      try { return JSON.parse(input.value); } catch { input.focus(); throw new Error(`${name} is not valid JSON`); }
    };
  }
  const checked = () => {
    const v = read();
    if (v === undefined && required) { input.focus(); throw new Error(`${of.title || name} is needed`); }
    return v;
  };
  return { name, read: checked, element: h("div", { class: "field" },
    h("label", { for: id }, of.title || name, required && h("span", { class: "muted" }, " (needed)")), input,
    of.description && h("p", { class: "muted", id: id + "-about" }, of.description)) };
}
