// What every page is drawn with. No text of a recording becomes markup.
"use strict";
const byId = (id) => document.getElementById(id);

function make(tag, options, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(options || {})) {
    if (value === undefined || value === null) continue;
    if (key === "on") for (const [event, handler] of Object.entries(value)) node.addEventListener(event, handler);
    else if (key === "cls") node.className = value;
    else node.setAttribute(key, value);
  }
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}

function shape(tag, attributes, text) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [key, value] of Object.entries(attributes || {})) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function number(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e5 || size < 1e-3) return value.toExponential(3).replace(/\.?0+e/, "e");
  return String(Number(value.toPrecision(5)));
}

// A name of parts that may wrap after its dots.
function dotted(name) {
  const code = make("code", { title: name });
  name.split(/(?<=\.)/).forEach((piece, i) => { if (i) code.append(make("wbr")); code.append(piece); });
  return code;
}

// Of a row with fewer cells than there are columns the last one goes on to the end.
function table(head, rows) {
  const node = make("table", { cls: "small" });
  node.append(make("thead", {}, make("tr", {}, ...head.map((h) => make("th", { cls: h.num ? "num" : "" }, h.text)))));
  const body = make("tbody");
  for (const row of rows) {
    const line = make("tr", { cls: row.cls || "", on: row.on });
    row.cells.forEach((cell, i) => {
      const rest = i === row.cells.length - 1 ? head.length - i : 1;
      line.append(make("td", { cls: head[i].num && rest === 1 ? "num" : "", colspan: rest > 1 ? rest : null }, cell));
    });
    body.append(line);
  }
  node.append(body);
  return node;
}

function tip(text, event) {
  const node = byId("tip");
  node.hidden = !text;
  if (!text) return;
  node.textContent = text;
  const left = Math.min(event.clientX + 14, innerWidth - node.offsetWidth - 8);
  node.style.left = left + "px";
  node.style.top = Math.min(event.clientY + 16, innerHeight - node.offsetHeight - 8) + "px";
}
