// The report page: reads the JSON in #data and draws it.
const data = JSON.parse(document.getElementById("data").textContent);
const VERDICTS = ["same", "within noise", "suspicious", "broken", "not comparable"];
const ROLES = ["input", "parameter", "output", "parameter gradient"];
const STATISTICS = ["max", "min", "mean", "norm"];
// Positions in a row of the data; html_report.cc writes them in this order.
const CALL = 0, ITEM = 1, ROLE = 2, VERDICT = 3, REASON = 4, ERROR = 5, EXPLAINED = 6, DTYPE = 7,
  SHAPE = 9, RESULT = 11, STATS = 12, METRICS = 14, NOTES = 15;
let part = data.parts[Math.max(0, data.parts.findIndex((p) => p.header.first_wrong_call))];
if (data.overview && data.overview.first_wrong_call) part = data.parts[partOf(data.overview.first_wrong_call)] || part;

const badge = (verdict) => make("span", { cls: "badge v" + verdict }, make("i"), VERDICTS[verdict]);

// --- facts of a row -----------------------------------------------------------------------------

const callName = (call) => part.calls[call][0] || part.calls[call][1];
const itemName = (row) => (row[ITEM].startsWith(".") ? callName(row[CALL]) + row[ITEM] : row[ITEM]);
const text = (index) => (index < 0 ? "" : part.texts[index]);
// The reason code, with its words where it has some.
const reasonText = (row) => {
  const code = text(row[REASON]), words = part.reasons[code];
  return words ? code + ": " + words : code;
};
const both = (row, at) => {
  const target = text(row[at]), golden = text(row[at + 1]);
  return target === golden || !golden ? target : (target || "none") + " | " + golden;
};
const ratio = (row) => (typeof row[ERROR] === "number" && row[EXPLAINED] > 0 ? row[ERROR] / row[EXPLAINED] : null);
function statistics(row, side) {
  const own = row[STATS + side];
  if (own === 0) return null;  // this side has no such value
  return side === 1 && own === 1 ? row[STATS] : own;
}
// What the statistics of one side are called: an argument is a value, and may be a word.
const statisticNames = (own) => (own && own.length === 1 ? ["value"] : STATISTICS);
function stackOf(call) {
  const at = part.calls[call][2];
  return at < 0 ? [] : part.stacks[at].map((frame) => part.frames[frame]);
}

// --- answer ---------------------------------------------------------------------------------------

function drawHeader() {
  const sides = byId("sides");
  sides.replaceChildren();
  for (const side of ["target", "golden"]) {
    sides.append(make("dt", {}, side), make("dd", {}, part.header[side]));
  }
  sides.append(make("dt", {}, "mode"), make("dd", {}, part.header.mode));
  document.title = part.answer + " - plumbline compare";
  const choice = byId("part-choice");
  if (data.parts.length < 2 || choice.firstChild) return;
  const select = make("select", { "aria-label": "Rank", on: { change: () => choose(Number(select.value)) } });
  data.parts.forEach((p, i) => select.append(make("option", { value: i }, p.label)));
  select.value = data.parts.indexOf(part);
  choice.append(select);
}

function drawAnswer() {
  const whole = data.overview || { ...part.header, answer: part.answer };
  const answer = whole.first_wrong_call, box = byId("answer");
  const good = whole.answer.startsWith("no wrong call");
  const weak = whole.certainty && whole.certainty.level !== "high" ? whole.certainty : null;
  const sure = () => weak && make("p", {}, make("span", { cls: "cause" }, `Certainty ${weak.level}:`), weak.text);
  box.replaceChildren();
  box.className = answer ? "bad" : good ? "good" : "unknown";
  if (!answer) {
    const colon = whole.answer.indexOf(":");
    const name = whole.answer.slice(0, colon < 0 ? undefined : colon);
    box.append(make("div", { cls: "lead" }, good ? "Every call agrees within rounding" + (weak ? ", as far as recorded" : "") : "Not everything could be judged"),
      make("div", { cls: "name" }, name.charAt(0).toUpperCase() + name.slice(1)));
    if (colon >= 0) box.append(make("p", {}, whole.answer.slice(colon + 1).trim()));
    if (good && weak) box.append(sure());
    return;
  }
  const where = data.overview ? ` over ${data.overview.ranks.length} ${unit()}s: ${labelOf(answer)}` : "";
  box.append(make("div", { cls: "lead" }, "First wrong call" + where), make("div", { cls: "name" }, answer.name));
  if (answer.cause) {
    const sure = answer.confidence ? ` (${answer.confidence} confidence)` : "";
    const known = answer.cause === "unexplained" ? "Cause not known:" : `Likely cause: ${answer.cause}${sure}`;
    box.append(make("p", {}, make("span", { cls: "cause" }, known), answer.cause_text || ""));
  }
  if (answer.what !== answer.cause_text) box.append(make("p", {}, answer.what));
  if (weak) box.append(sure());
  const facts = make("dl", { cls: "facts" });
  const fact = (name, value) => { if (value) facts.append(make("dt", {}, name), make("dd", {}, value)); };
  fact("called at", answer.stack_line && make("code", {}, answer.stack_line));
  fact("inside", answer.module_path.length > 0 && dotted(answer.module_path.join("  <  ")));
  fact("seen in", answer.item && make("code", {}, answer.item));
  fact("as a test", part.header.as_test && make("code", {}, part.header.as_test));
  if (!whole.complete) fact("note", "Some calls or files could not be judged; see the end of this page.");
  if (facts.firstChild) box.append(facts);
}

function drawCounts() {
  const box = byId("counts"), counts = part.header.counts;
  box.replaceChildren();
  const add = (name, value, cls) => box.append(make("div", { cls: "count " + (value ? cls : "zero") },
    make("b", {}, value.toLocaleString("en")), make("span", {}, name)));
  for (const name of VERDICTS) add("rows " + name, counts[name], name);
  add("paired calls", counts["paired calls"], "");
  for (const name of ["unmatched target", "unmatched golden"]) if (counts[name]) add("calls " + name, counts[name], "suspicious");
  for (const name of ["unreadable files", "missing values"]) if (counts[name]) add(name, counts[name], "suspicious");
}

// --- drawing ----------------------------------------------------------------------------------------

const WIDE = 1240;

// An svg with axes; returns it with the functions from values to pixels.
function plot(width, height, x, y, labels) {
  const left = 64, right = 14, top = 10, bottom = 40;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": labels.title });
  const px = (v) => left + (v - x.low) / (x.high - x.low || 1) * (width - left - right);
  const py = (v) => height - bottom - (v - y.low) / (y.high - y.low || 1) * (height - top - bottom);
  for (const at of ticks(y)) {
    svg.append(shape("line", { class: "tick", x1: left, x2: width - right, y1: py(at), y2: py(at) }),
      shape("text", { x: left - 8, y: py(at) + 4, "text-anchor": "end" }, y.log ? power(at) : number(at)));
  }
  for (const at of ticks(x)) {
    svg.append(shape("text", { x: px(at), y: height - bottom + 17, "text-anchor": "middle" }, x.log ? power(at) : number(at)));
  }
  svg.append(shape("line", { class: "axis", x1: left, x2: width - right, y1: height - bottom, y2: height - bottom }),
    shape("text", { x: (left + width - right) / 2, y: height - 5, "text-anchor": "middle" }, labels.x));
  return { svg, px, py, bottom: height - bottom, top };
}

const power = (exponent) => (exponent === 0 ? "1" : "1e" + exponent);

function ticks(axis) {
  const span = axis.high - axis.low || 1;
  let step = Math.pow(10, Math.floor(Math.log10(span / 4)));
  if (axis.log || axis.whole) step = Math.max(1, step);
  while (span / step > 7) step *= span / step > 14 ? 5 : 2;
  const found = [];
  for (let at = Math.ceil(axis.low / step) * step; at <= axis.high + step * 1e-9; at += step) found.push(Number(at.toPrecision(12)));
  return found;
}

const range = (values, margin) => {
  let low = Infinity, high = -Infinity;
  for (const v of values) { if (v < low) low = v; if (v > high) high = v; }
  if (low > high) return { low: 0, high: 1 };
  const extra = (high - low || Math.abs(high) || 1) * margin;
  return { low: low - extra, high: high + extra };
};

function legend(parts) {
  return make("div", { cls: "legend" }, ...parts);
}
const explainedKey = () => make("span", {}, make("span", { cls: "dash" }), "error that rounding and the inputs explain");

function drawGrowth() {
  const cards = document.querySelector("#growth .cards");
  cards.replaceChildren();
  const points = part.growth.filter((p) => typeof p[1] === "number");
  const errors = points.flatMap((p) => [p[1], p[2]]).filter((v) => v > 0 && isFinite(v)).map(Math.log10);
  const around = callsAround();
  const card = make("div", { cls: "card w12" });
  cards.append(card);
  card.append(make("h3", {}, "Relative error of every call's outputs, in call order"));
  if (errors.length === 0) card.append(make("p", { cls: "note" }, "No output has an error that could be drawn: all are equal, or the recording has digests only."));
  const y = errors.length ? range(errors, 0.04) : { low: -16, high: 0 };
  Object.assign(y, { low: Math.max(-12, Math.floor(y.low)), high: Math.ceil(y.high), log: true });
  if (y.high === y.low) y.high += 1;
  // As wide as it is shown, so that its words are as large as others; 38: the card's border and padding.
  const wide = Math.min(1800, Math.max(700, cards.clientWidth - 38));
  const { svg, px, py, top, bottom } = plot(wide, 400, { low: 0, high: Math.max(1, part.calls.length - 1), whole: true }, y,
    { title: "Error along the call order", x: "call" });
  const height = (v) => py(v > 0 && isFinite(v) ? Math.min(y.high, Math.max(y.low, Math.log10(v))) : v > 0 ? y.high : y.low);
  const others = data.parts.length > 1 ? [make("span", {}, make("span", { cls: "other-key" }), `other ${unit()}s`)] : [];
  card.append(legend([...VERDICTS.map((_, i) => badge(i)), explainedKey(), ...others]), svg);
  const line = part.growth.filter((p) => p[2] > 0).map((p) => `${px(p[0])},${height(p[2])}`);
  const wrong = wrongCall();
  if (wrong >= 0) {
    svg.append(shape("line", { x1: px(wrong), x2: px(wrong), y1: top, y2: bottom, stroke: "var(--broken)", "stroke-width": 1 }));
    const end = wrong > part.calls.length * 0.7;
    svg.append(shape("text", { x: px(wrong) + (end ? -6 : 6), y: top + 12, "text-anchor": end ? "end" : "start" }, "first wrong call"));
  }
  svg.append(shape("polyline", { class: "explained", points: line.join(" ") }));
  for (const other of data.parts) {
    if (other === part) continue;
    svg.append(shape("polyline", { fill: "none", stroke: "var(--same)", "stroke-opacity": 0.4,
      points: other.growth.filter((p) => p[1] > 0).map((p) => `${px(p[0])},${height(p[1])}`).join(" ") }));
  }
  let rings = false;
  for (const p of part.growth) {
    const verdict = p[3], plain = typeof p[1] === "number";
    if (!plain && verdict === 4) continue;
    const late = isLate(p[0]);
    rings = rings || late;
    const dot = shape("circle", { cx: px(p[0]), cy: plain ? height(p[1]) : top, r: verdict >= 2 ? 4 : 3, class: `pick f${verdict}${late ? " ring" : ""}` });
    dot.addEventListener("mousemove", (e) => tip(`${callName(p[0])}\n${VERDICTS[verdict]}, error ${plain ? number(p[1]) : "not finite"}, explained ${number(p[2])}`, e));
    dot.addEventListener("mouseleave", () => tip(""));
    dot.addEventListener("click", () => showCall(p[0]));
    svg.append(dot);
  }
  if (part.calls.length > part.growth.length * 1.5) card.append(make("p", { cls: "note" }, "Neighbouring calls share a point; it shows the worst of them."));
  if (rings) card.append(make("p", { cls: "note" }, "Rings are parameter gradients: they stand beside their module but are computed in the backward pass."));
  if (around) cards.append(around);
}

const isLate = (call) => callName(call).endsWith(".parameters_grad");
const wrongCall = () => {
  const answer = part.header.first_wrong_call;
  return answer ? part.calls.findIndex((c) => c[0] === answer.name || c[1] === answer.name) : -1;
};

// The worst output row of each of the calls around the first wrong one.
function callsAround() {
  const wrong = wrongCall();
  if (wrong < 0) return null;
  const worst = new Map();
  for (const row of part.rows) {
    if (row[CALL] < wrong - 4 || row[CALL] > wrong + 9 || row[ROLE] < 2) continue;
    const known = worst.get(row[CALL]);
    const weight = (r) => (r[VERDICT] === 3 ? 1e300 : 0) + (typeof r[ERROR] === "number" ? r[ERROR] : 0);
    if (!known || weight(row) > weight(known)) worst.set(row[CALL], row);
  }
  const rows = [...worst.values()].sort((a, b) => a[CALL] - b[CALL]).map((row) => ({
    cls: "link" + (row[CALL] === wrong ? " hit" : ""), on: { click: () => showCall(row[CALL]) },
    cells: [dotted(callName(row[CALL])), make("span", { title: reasonText(row) }, badge(row[VERDICT]),
      row[VERDICT] === 4 ? make("div", { cls: "dim" }, text(row[REASON])) : null), bar(row), number(row[ERROR])] }));
  return make("div", { cls: "card w12" }, make("h3", {}, "The calls around it"),
    table([{ text: "call" }, { text: "verdict" }, { text: "error (log scale)" }, { text: "", num: true }], rows),
    legend([explainedKey()]));
}

function bar(row) {
  const place = (v) => Math.max(0, Math.min(100, (Math.log10(v) + 12) / 14 * 100));
  const node = make("div", { cls: "bar v" + row[VERDICT] });
  const error = row[ERROR], worst = row[VERDICT] === 3 && typeof error !== "number";
  const fill = make("b");
  fill.style.width = (worst ? 100 : error > 0 ? Math.max(1, place(error)) : 0) + "%";
  node.append(fill);
  if (row[EXPLAINED] > 0) {
    const mark = make("i");
    mark.style.left = place(row[EXPLAINED]) + "%";
    node.append(mark);
  }
  return node;
}
