// The evidence of the first wrong call: its rows, its statistics, and plots of its tensors.

function drawEvidence() {
  const wrong = wrongCall(), section = byId("evidence");
  section.hidden = wrong < 0;
  if (section.hidden) return;
  const cards = section.querySelector(".cards");
  cards.replaceChildren();
  const rows = part.rows.filter((row) => row[CALL] === wrong), item = part.header.first_wrong_call.item;
  const frames = part.header.first_wrong_call.stack;
  const call = part.calls[wrong], alone = call[3] !== undefined;
  cards.append(alone ? rowsOfLoneCall(call, rows, frames.length === 0) : rowsOfCall(rows, item, frames.length === 0));
  if (frames.length > 0) {
    cards.append(make("div", { cls: "card w5" }, make("h3", {}, "Where the model makes this call"), stackList(frames)));
  }
  const evidence = part.evidence;
  const own = call[0] ? 0 : 1;  // the side that has the call; the other may have one of its name
  const other = alone ? part.calls.findIndex((each) => each[3] !== undefined && !each[own] && each[1 - own] === call[own]) : -1;
  if (other >= 0) cards.append(rowsOfLoneCall(part.calls[other], part.rows.filter((row) => row[CALL] === other), true));
  const taken = alone ? part.rows.filter((row) => itemName(row) === item && row[CALL] !== wrong && statistics(row, 0) && statistics(row, 1)) : [];
  if (taken.length) cards.append(resultOfLoneCall(taken));
  if (evidence) cards.append(drawPairs(evidence), drawErrors(evidence), drawProfile(evidence), drawWorst(evidence));
  else if (part.header.mode === "statistics" && !alone) cards.append(drawStatistics(rows, item));
}

// The innermost frame of the user's own code, then its callers; what it goes into is folded away.
function stackList(frames) {
  const foreign = new Set(part.foreign.map((frame) => part.frames[frame]));
  const own = Math.max(0, frames.findIndex((frame) => !foreign.has(frame)));
  const lines = (some) => some.map((frame) => make("li", { cls: frame === frames[own] ? "own" : "" }, frame));
  return make("div", { cls: "frames" }, make("ol", { cls: "stack" }, ...lines(frames.slice(own))), own > 0 ? make("details", {},
    make("summary", {}, `${own} frame${own > 1 ? "s" : ""} inside it, innermost first`), make("ol", { cls: "stack" }, ...lines(frames.slice(0, own)))) : null);
}

function rowsOfCall(rows, item, wide) {
  const lines = rows.map((row) => ({ cls: "link" + (itemName(row) === item ? " hit" : ""),
    on: { click: () => { showCall(row[CALL]); pick(row); } },
    cells: [make("code", {}, row[ITEM].startsWith(".") ? row[ITEM].slice(1) : row[ITEM]), both(row, SHAPE), both(row, DTYPE),
      badge(row[VERDICT]),
      text(row[REASON]).startsWith("nonfinite-") ? "not finite" : number(row[ERROR]), number(row[EXPLAINED])] }));
  return make("div", { cls: "card " + (wide ? "w12" : "w7") }, make("h3", {}, "What went in and what came out"),
    table([{ text: "value" }, { text: "shape" }, { text: "dtype" }, { text: "verdict" }, { text: "error", num: true },
      { text: "explained", num: true }], lines),
    make("p", { cls: "note" }, "Error: relative distance of target and golden. Explained: what rounding and the errors of the inputs account for."));
}

// A call that one side has alone: there is nothing to compare, so what it takes and returns is shown.
function rowsOfLoneCall(call, rows, wide) {
  const side = call[0] ? "the target" : "golden", at = call[0] ? 0 : 1;
  const lines = rows.map((row) => ({ cls: "link", on: { click: () => { showCall(row[CALL]); pick(row); } },
    cells: [make("code", {}, row[ITEM].startsWith(".") ? row[ITEM].slice(1) : row[ITEM]), ROLES[row[ROLE]], text(row[SHAPE + at]), text(row[DTYPE + at]),
      ...statisticNames(statistics(row, at)).map((_, i) => number((statistics(row, at) || [])[i]))] }));
  return make("div", { cls: "card " + (wide ? "w12" : "w7") }, make("h3", {}, `What ${side} takes and returns here`),
    table([{ text: "value" }, { text: "" }, { text: "shape" }, { text: "dtype" }, ...STATISTICS.map((name) => ({ text: name, num: true }))], lines),
    make("p", { cls: "note" }, `The call has ${part.reasons[text(call[3])] || "no counterpart: " + text(call[3])}. These are ${side}'s values.`));
}

// Where both sides have a value again, and they differ.
function resultOfLoneCall(rows) {
  const lines = rows.flatMap((row) => statisticNames(statistics(row, 0)).map((name, i) => ({ cls: "hit",
    cells: [i ? "" : make("code", {}, itemName(row)), name, number((statistics(row, 0) || [])[i]), number((statistics(row, 1) || [])[i])] })));
  return make("div", { cls: "card w12" }, make("h3", {}, "Where its result is taken, and differs from golden's"),
    table([{ text: "value" }, { text: "" }, { text: "target", num: true }, { text: "golden", num: true }], lines));
}

function drawStatistics(rows, item) {
  const lines = [];
  for (const row of rows) {
    const target = statistics(row, 0), golden = statistics(row, 1);
    if (!target || !golden || (row[ROLE] < 2 && itemName(row) !== item)) continue;
    statisticNames(target).forEach((name, i) => lines.push({ cls: target[i] === golden[i] ? "" : itemName(row) === item ? "hit" : "",
      cells: [i ? "" : make("code", {}, row[ITEM].slice(1)), name, number(target[i]), number(golden[i]), number(row[METRICS][i]),
        typeof row[METRICS][4 + i] === "number" ? number(row[METRICS][4 + i]) + " %" : ""] }));
  }
  return make("div", { cls: "card w12" }, make("h3", {}, "Statistics of what is wrong and of the outputs"), table([{ text: "value" }, { text: "" },
    { text: "target", num: true }, { text: "golden", num: true }, { text: "difference", num: true }, { text: "relative", num: true }], lines),
    make("p", { cls: "note" }, "Only statistics were recorded. Record this call with task tensor to see its elements."));
}

function drawPairs(evidence) {
  const pairs = evidence.pairs.filter((p) => typeof p[1] === "number" && typeof p[2] === "number");
  const axis = range(pairs.flatMap((p) => [p[1], p[2]]), 0.05);
  const { svg, px, py } = plot(450, 310, axis, axis, { title: "Target against golden", x: "golden" });
  svg.append(shape("line", { x1: px(axis.low), y1: py(axis.low), x2: px(axis.high), y2: py(axis.high), class: "explained" }));
  for (const [index, target, golden] of pairs) {
    const dot = shape("circle", { cx: px(golden), cy: py(target), r: 3, class: target === golden ? "f0" : "f3", "fill-opacity": 0.6 });
    dot.addEventListener("mousemove", (e) => tip(`element ${index}\ntarget ${number(target)}\ngolden ${number(golden)}`, e));
    dot.addEventListener("mouseleave", () => tip(""));
    svg.append(dot);
  }
  return make("div", { cls: "card w4" }, make("h3", {}, "Target against golden, element by element"), svg,
    make("p", { cls: "note" }, `${pairs.length} of ${evidence.count.toLocaleString("en")} elements, the worst ones among them. On the dashed line both sides agree.`));
}

function drawErrors(evidence) {
  const h = evidence.histogram, counts = h.counts, most = Math.max(1, ...counts);
  const { svg, px, py, bottom } = plot(450, 310, { low: h.low, high: h.low + counts.length * h.step, log: true }, { low: 0, high: most * 1.05, whole: true },
    { title: "Distribution of the relative error", x: "relative error of an element" });
  counts.forEach((count, i) => {
    if (!count) return;
    const left = px(h.low + i * h.step), right = px(h.low + (i + 1) * h.step);
    const box = shape("rect", { x: left + 0.5, width: Math.max(1, right - left - 1), y: py(count), height: bottom - py(count), class: "f3", "fill-opacity": 0.75 });
    box.addEventListener("mousemove", (e) => tip(`${count} elements\nerror ${number(Math.pow(10, h.low + i * h.step))} to ${number(Math.pow(10, h.low + (i + 1) * h.step))}`, e));
    box.addEventListener("mouseleave", () => tip(""));
    svg.append(box);
  });
  return make("div", { cls: "card w4" }, make("h3", {}, "How large the errors are"), svg,
    make("p", { cls: "note" }, `${h.equal.toLocaleString("en")} of ${h.total.toLocaleString("en")} sampled elements are equal` +
      (h.nonfinite ? `; ${h.nonfinite.toLocaleString("en")} are NaN or infinite on a side.` : ".")));
}

function drawProfile(evidence) {
  const values = evidence.profile.map((v) => (typeof v === "number" ? v : 0)), top = Math.max(...values) || 1;
  const { svg, px, py, bottom } = plot(450, 310, { low: 0, high: evidence.count, whole: true }, { low: 0, high: top * 1.05 },
    { title: "Where in the tensor", x: "element, in memory order" });
  values.forEach((value, i) => {
    const left = px(i * evidence.count / values.length), right = px((i + 1) * evidence.count / values.length);
    const bad = typeof evidence.profile[i] !== "number";
    svg.append(shape("rect", { x: left, width: Math.max(1, right - left), y: bad ? py(top) : py(value), height: bottom - (bad ? py(top) : py(value)), class: bad ? "f4" : "f3" }));
  });
  return make("div", { cls: "card w4" }, make("h3", {}, "Where in the tensor the errors are"), svg,
    make("p", { cls: "note" }, "Largest absolute error of each stretch of elements" + (evidence.profile.some((v) => typeof v !== "number") ? "; full height: NaN or infinity." : ".")));
}

// Row-major index as one index per dimension.
function position(index, sizes) {
  const places = [];
  for (const size of [...sizes].reverse()) {
    places.unshift(index % size);
    index = Math.floor(index / size);
  }
  return "[" + places.join(", ") + "]";
}

function drawWorst(evidence) {
  return make("div", { cls: "card w12" }, make("h3", {}, "The worst elements of " + evidence.item), table(
    [{ text: "index" }, { text: "target", num: true }, { text: "golden", num: true }, { text: "difference", num: true }],
    evidence.worst.map(([index, target, golden]) => ({ cells: [make("code", {}, position(index, evidence.shape)), String(target), String(golden),
      typeof target === "number" && typeof golden === "number" ? number(target - golden) : ""] }))));
}

// --- the rest ---------------------------------------------------------------------------------------

function drawNotes() {
  const box = byId("notes");
  while (box.children.length > 1) box.lastChild.remove();
  if (part.header.warnings.length) {
    box.append(make("h3", {}, "Warnings"), make("ul", { cls: "warnings" }, ...part.header.warnings.map((w) => make("li", {}, w))));
  }
  const words = make("dl");
  const explain = ["the two sides are equal", "they differ, but by no more than rounding and the differences of the inputs explain",
    "they differ by more than that", "they differ by far more, or NaN, infinity or zeros stand on one side only",
    "one side is missing, has another shape or type, cannot be read, or proves nothing"];
  explain.forEach((sentence, i) => words.append(make("dt", {}, badge(i)), make("dd", {}, sentence)));
  words.append(make("dt", {}, "reason inherited"), make("dd", {}, "the difference came in through the inputs: look at the earlier call"));
  box.append(words);
}

function choose(index) {
  part = data.parts[index];
  Object.assign(view, { sort: null, chosen: null });
  drawHeader();
  drawAnswer();
  drawCounts();
  drawRanks();
  drawEvidence();
  drawGrowth();
  drawFilters();
  drawHead();
  select();
  drawNotes();
  const wrong = wrongCall();
  const start = part.rows.find((row) => row[CALL] === wrong && itemName(row) === part.header.first_wrong_call.item) || part.rows[0];
  if (start) scrollToRow(view.rows.indexOf(start));
  if (start) pick(start);
  else byId("detail").replaceChildren("No row.");
}

startGrid();
choose(data.parts.indexOf(part));
