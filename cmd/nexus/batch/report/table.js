"use strict";
(() => {
  const size = 100;
  const byId = (id) => document.getElementById(id);
  let first = 0, found = rows;
  const show = () => {
    const body = byId("lines");
    body.replaceChildren();
    for (const row of found.slice(first, first + size)) {
      const line = body.insertRow();
      const [name, repeat, outcome, seconds, tokens, query, anchor] = row;
      const cell = (text, className) => {
        const td = line.insertCell();
        td.textContent = text;
        td.className = className;
      };
      const head = document.createElement("th");
      head.scope = "row";
      if (anchor) {
        const link = document.createElement("a");
        link.href = "#" + anchor;
        link.textContent = name;
        head.append(link);
      } else {
        head.textContent = name;
      }
      line.append(head);
      cell(repeat, "n");
      cell(outcome, outcome);
      cell(seconds.toFixed(3), "n");
      cell(tokens, "n");
      cell(query, "text");
    }
    const last = Math.min(first + size, found.length);
    byId("found").textContent = found.length === 0 ? "No line fits." : `${first + 1} to ${last} of ${found.length}`;
    byId("back").disabled = first === 0;
    byId("next").disabled = last === found.length;
  };
  const find = () => {
    const text = byId("text").value.toLowerCase(), outcome = byId("outcome").value, order = Number(byId("order").value);
    found = rows.filter((r) => (outcome === "" || r[2] === outcome) && (r[0] + " " + r[5]).toLowerCase().includes(text));
    if (order > 0) { found.sort((a, b) => b[order] - a[order]); }
    first = 0;
    show();
  };
  for (const id of ["text", "outcome", "order"]) { byId(id).addEventListener("input", find); }
  byId("back").addEventListener("click", () => { first -= size; show(); });
  byId("next").addEventListener("click", () => { first += size; show(); });
  document.forms[0].addEventListener("submit", (e) => e.preventDefault());
  show();
})();
