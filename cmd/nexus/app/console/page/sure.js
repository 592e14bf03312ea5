// Asks in a dialog, and gives orders to the router.
import { h } from "./dom.js";
import { post } from "./net.js";

// sure asks in a dialog; without the word yes, it tells.
export function sure(title, text, yes) {
  return new Promise((resolve) => {
    const dialog = h("dialog", { "aria-labelledby": "sure", onclose: () => { dialog.remove(); resolve(dialog.returnValue === "yes"); } },
      h("form", { method: "dialog" }, h("h2", { id: "sure" }, title), typeof text === "string" ? h("p", {}, text) : text, h("p", { class: "buttons" },
        yes && h("button", { type: "button", onclick: () => dialog.close("no") }, "Cancel"),
        h("button", { type: "button", class: "primary", onclick: () => dialog.close("yes") }, yes || "OK"))));
    document.body.append(dialog);
    dialog.showModal();
  });
}

// order is a button that posts to a path, after the question ask if there is one, and says what went wrong. done gets
// whether the router has obeyed.
export const order = (id, verb, name, path, body, done, ask) => h("button", { type: "button", class: "small", id, "aria-label": `${verb} ${name}`, onclick: async () => {
  if (ask && !await sure(`${verb} ${name}?`, ask, verb)) return;
  let answer;
  try {
    answer = await post(path, body);
    if (answer.warning) await sure("Please note", answer.warning);
  } catch (error) { await sure("Not done", error.message); }
  await done(Boolean(answer));
  document.getElementById(id)?.focus();
} }, verb);
