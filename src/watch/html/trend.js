// The page of a trend: reads the JSON in #data and draws it.
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 100;  // rows that are drawn at first, and more on demand
const view = { words: "", kind: "", statistic: 0, log: false, chosen: null, shown: PAGE };
const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;
const several = new Set(data.series.filter((series) => series.micro_step > 0).map((series) => series.kind)), staged = data.series.some((series) => series.stage > 0);
const titled = (series) => series.name + (staged ? ` (stage ${series.stage})` : "") + (several.has(series.kind) ? `, micro step ${series.micro_step}` : "");
const stepText = (point) => {
  const first = data.point_steps[point], next = data.point_steps[point + 1];
  const last = next === undefined ? data.last_step : next - 1;
  return data.steps === data.point_steps.length || last === first ? `step ${first}` : `steps ${first} to ${last}`;
};

// --- answer -----------------------------------------------------------------------------------

function drawAnswer() {
  document.title = `${data.answer} - plumbline ${data.page}`;
  document.querySelector(".brand span").textContent = data.page;
  for (const [name, value] of [["data", data.data], ["ranks", data.ranks], ["steps", data.steps]]) {
    byId("sides").append(make("dt", {}, name), make("dd", {}, String(value)));
  }
  const box = byId("answer");
  box.className = data.state;
  box.append(make("div", { cls: "name" }, data.answer), make("pre", {}, data.rest.trimEnd()));
  for (const note of data.notes) box.append(make("p", {}, make("span", { cls: "cause" }, "Note:"), note));
}

// --- curves -----------------------------------------------------------------------------------

// Pieces of the curve between gaps: [point, high, low].
function pieces(curve) {
  const [high, low] = [curve[0], curve[1] || curve[0]], found = [];
  let piece = [];
  high.forEach((value, at) => {
    if (value === null) { if (piece.length) found.push(piece); piece = []; } else piece.push([at, value, low[at]]);
  });
  if (piece.length) found.push(piece);
  return found;
}

// Value -> height; on a log axis values of both signs keep their sign, and what is small is flat.
function axisOf(curve, log) {
  const values = curve.flat().filter((value) => value !== null);
  if (!values.length) return { at: () => 0.5, ticks: [] };
  const sizes = values.map(Math.abs).filter((size) => size > 0);
  const least = Math.min(...(sizes.length ? sizes : [1]));
  const bend = (value) => (log ? Math.sign(value) * Math.log10(1 + Math.abs(value) / least) : value);
  const back = (height) => (log ? Math.sign(height) * least * (10 ** Math.abs(height) - 1) : height);
  let low = Math.min(...values.map(bend)), high = Math.max(...values.map(bend));
  if (low === high) { low -= Math.abs(low) / 2 || 1; high += Math.abs(high) / 2 || 1; }
  const ticks = [0, 1, 2, 3, 4].map((i) => low + (high - low) * i / 4).map((height) => ({ at: (height - low) / (high - low), text: number(back(height)) }));
  return { at: (value) => (bend(value) - low) / (high - low), ticks };
}

function drawCurve(svg, curve, axis, xOf, yOf) {
  for (const piece of pieces(curve)) {
    const top = piece.map(([at, high]) => `${xOf(at).toFixed(1)},${yOf(axis.at(high)).toFixed(1)}`);
    if (curve[1]) {
      const under = piece.map(([at, , low]) => `${xOf(at).toFixed(1)},${yOf(axis.at(low)).toFixed(1)}`);
      svg.append(shape("polygon", { class: "band", points: top.concat([...under].reverse()).join(" ") }), shape("polyline", { class: "low", points: under.join(" ") }));
    }
    // A single point is a curve too.
    svg.append(piece.length > 1 ? shape("polyline", { class: "curve", points: top.join(" ") })
      : shape("circle", { cx: xOf(piece[0][0]), cy: yOf(axis.at(piece[0][1])), r: 2.5, fill: "var(--link)" }));
  }
}

// An area over each run of points with values that are no numbers.
function drawBad(svg, series, xOf, top, bottom) {
  let begin = 0;
  series.bad.forEach((at, i) => {
    if (series.bad[i + 1] === at + 1) return;
    const left = xOf(series.bad[begin]) - 1, right = xOf(at) + 1;
    svg.append(shape("rect", { class: "bad", x: left, y: top, width: right - left, height: bottom - top }));
    begin = i + 1;
  });
}

function spark(series) {
  const svg = shape("svg", { class: "spark", viewBox: "0 0 120 26", "aria-hidden": "true" });
  const xOf = (at) => 2 + 116 * (data.point_steps.length > 1 ? at / (data.point_steps.length - 1) : 0.5);
  drawBad(svg, series, xOf, 0, 26);
  const curve = series.curves[view.statistic];
  if (curve) drawCurve(svg, curve, axisOf(curve, view.log), xOf, (height) => 23 - 20 * height);
  return svg;
}

const pointOf = (step) => {
  let at = data.point_steps.findIndex((first) => first > step);
  return (at < 0 ? data.point_steps.length : at) - 1;
};

function plot(series) {
  const width = 760, height = 360, left = 78, right = 12, top = 12, bottom = 42;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${data.statistics[view.statistic]} over the steps` });
  const last = Math.max(1, data.point_steps.length - 1);
  const xOf = (at) => left + (width - left - right) * (data.point_steps.length > 1 ? at / last : 0.5);
  const yOf = (part) => height - bottom - (height - top - bottom) * part;
  const curve = series.curves[view.statistic];
  const axis = axisOf(curve || [], view.log);
  for (const tick of axis.ticks) {
    svg.append(shape("line", { class: "grid", x1: left, x2: width - right, y1: yOf(tick.at), y2: yOf(tick.at) }),
      shape("text", { x: left - 6, y: yOf(tick.at) + 4, "text-anchor": "end" }, tick.text));
  }
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const at = Math.round(last * part);
    if (at < data.point_steps.length) svg.append(shape("text", { x: xOf(at), y: height - bottom + 18, "text-anchor": part === 1 ? "end" : part === 0 ? "start" : "middle" }, String(data.point_steps[at])));
  }
  svg.append(shape("text", { x: (left + width - right) / 2, y: height - 6, "text-anchor": "middle" }, "step"));
  drawBad(svg, series, xOf, top, height - bottom);
  for (const step of series.alerts) svg.append(shape("line", { class: "alert", x1: xOf(pointOf(step)), x2: xOf(pointOf(step)), y1: top, y2: height - bottom }));
  if (curve) drawCurve(svg, curve, axis, xOf, yOf);
  const cursor = shape("line", { class: "cursor", y1: top, y2: height - bottom, x1: -9, x2: -9 });
  svg.append(cursor);
  svg.addEventListener("mousemove", (event) => {
    const box = svg.getBoundingClientRect(), x = (event.clientX - box.left) * width / box.width;
    const at = Math.max(0, Math.min(data.point_steps.length - 1, Math.round((x - left) / (width - left - right) * last)));
    cursor.setAttribute("x1", xOf(at)); cursor.setAttribute("x2", xOf(at));
    const high = curve ? curve[0][at] : null, low = curve && curve[1] ? curve[1][at] : high;
    const value = high === null ? "nothing finite" : low === high ? number(high) : `${number(low)} to ${number(high)}`;
    tip(`${stepText(at)}: ${value}${series.bad.includes(at) ? "\nNaN or infinity" : ""}`, event);
  });
  svg.addEventListener("mouseleave", () => { tip(""); cursor.setAttribute("x1", -9); cursor.setAttribute("x2", -9); });
  return svg;
}

// --- list -------------------------------------------------------------------------------------

function selected() {
  const words = view.words.toLowerCase().split(/\s+/).filter(Boolean);
  return data.series.filter((series) => (!view.kind || series.kind === view.kind) && words.every((word) => (series.kind + " " + titled(series)).toLowerCase().includes(word)));
}

function remark(series) {
  if (series.remark !== undefined) return series.remark;
  if (series.bad.length) return `NaN or Inf from ${stepText(series.bad[0])}`;
  if (series.alerts.length) return `${plural(series.alerts.length, "alert")} from step ${series.alerts[0]}`;
  return series.jump >= 1.5 ? `${number(Number(series.jump.toPrecision(3)))} times at step ${series.jump_step}` : "";
}

function drawList() {
  const rows = selected(), list = document.querySelector("#curves .list");
  const lines = rows.slice(0, view.shown).map((series) => ({
    cls: "link" + (series === view.chosen ? " chosen" : ""), on: { click: () => choose(series) },
    cells: [series.kind, dotted(titled(series)), remark(series), spark(series)] }));
  list.replaceChildren(table([{ text: data.kind || "kind" }, { text: "tensor" }, { text: "what stands out" }, { text: data.statistics[view.statistic] || "" }], lines));
  if (rows.length > view.shown) {
    list.append(make("p", { cls: "more" }, make("button", { cls: "plain", on: { click: () => { view.shown += 5 * PAGE; drawList(); } } },
      `show more of the ${rows.length.toLocaleString("en")} tensors`)));
  }
  byId("row-note").textContent = `${rows.length.toLocaleString("en")} of ${plural(data.tensors, "tensor")}` +
    (data.series.length < data.tensors ? `; this page holds the ${data.series.length.toLocaleString("en")} that stand out most` : "") + ".";
}

function choose(series) {
  view.chosen = series;
  drawList();
  byId("detail").replaceChildren(make("h3", {}, `${series.kind} `, dotted(titled(series))), plot(series), make("p", { cls: "note" }, remark(series)));
}

function drawFilters() {
  const box = document.querySelector("#curves .filters");
  const changed = () => { view.shown = PAGE; drawList(); };
  const redrawn = () => { drawList(); if (view.chosen) choose(view.chosen); };
  const search = make("input", { type: "search", placeholder: "name ...", "aria-label": "Filter", on: { input: () => { view.words = search.value; changed(); } } });
  const kinds = make("select", { "aria-label": data.kind || "Kind", on: { change: () => { view.kind = kinds.value; changed(); } } }, make("option", { value: "" }, `all ${data.kind || "kind"}s`),
    ...[...new Set(data.series.map((series) => series.kind))].sort().map((kind) => make("option", { value: kind }, kind)));
  const statistics = make("select", { "aria-label": "Statistic", on: { change: () => { view.statistic = Number(statistics.value); redrawn(); } } },
    ...data.statistics.map((name, i) => make("option", { value: i }, name)));
  const log = make("input", { type: "checkbox", on: { change: () => { view.log = log.checked; redrawn(); } } });
  box.append(search, kinds, statistics, make("label", {}, log, "log axis"));
}

function drawNotes() {
  const words = make("dl");
  for (const [name, text] of data.words || [
    ["band", "from the smallest to the largest value over all ranks" + (data.steps > data.point_steps.length ? " and over the steps of a point" : "")],
    ["gap", "no value was recorded, or none that is finite"],
    ["red area", "some rank had NaN or infinity"], ["dashed line", "an alert of the monitor"],
    ["times", "how far a value is, on one rank, above the median of up to 16 values before; the list begins with NaN and infinity, then alerts, then the largest jumps"]]) {
    words.append(make("dt", {}, name), make("dd", {}, text));
  }
  byId("notes").append(words);
}

drawAnswer();
drawFilters();
if (data.series.length) choose(data.series[0]);
drawNotes();
