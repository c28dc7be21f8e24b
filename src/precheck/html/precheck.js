// The page of a pre-check: reads the JSON in #data and draws it.
const data = JSON.parse(document.getElementById("data").textContent);
const PAGE = 200;  // rows that are drawn at first, and more on demand
// Statuses as they are written, the classes of their badges, and what they mean.
const STATUS = {
  error: ["v3", "the device is off by more than the standard of this API allows"],
  Warning: ["v2", "off, within what the standard lets pass with a remark"],
  pass: ["v1", "every output is within the standard"],
  SKIP: ["v4", "not judged; the message begins with the cause"],
};
const badge = (status) => make("span", { cls: "badge " + (STATUS[status] || ["v0"])[0] }, make("i"), status);
const view = { words: "", statuses: { error: true, Warning: true, SKIP: true }, chosen: null, shown: PAGE };
const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

// --- answer -----------------------------------------------------------------------------------

function drawHeader() {
  document.title = data.answer + " - plumbline precheck";
  const sides = byId("sides");
  for (const [name, value] of Object.entries(data.facts)) {
    if (value !== "") sides.append(make("dt", {}, name), make("dd", {}, value));
  }
}

function drawAnswer() {
  const box = byId("answer"), worst = data.worst;
  box.className = worst ? "bad" : data.is_good ? "good" : "unknown";
  if (!worst) {
    box.append(make("div", { cls: "name" }, data.answer));
  } else {
    const others = data.counts.calls.error - 1;
    box.append(make("div", { cls: "lead" }, "wrong" + (others > 0 ? `, the worst of ${others + 1} calls` : "")),
      make("div", { cls: "name" }, worst.output), make("p", {}, worst.reason));
    const facts = make("dl", { cls: "facts" });
    if (worst.as_test) facts.append(make("dt", {}, "as a unit test"), make("dd", {}, make("code", { cls: "command" }, worst.as_test)));
    box.append(facts);
  }
  for (const line of data.remarks) box.append(make("p", {}, make("span", { cls: "cause" }, "Note:"), line));
}

function drawCounts() {
  const box = byId("counts");
  for (const [status, words] of [["error", "calls wrong"], ["Warning", "with a warning"], ["pass", "pass"], ["SKIP", "not judged"]]) {
    const count = data.counts.calls[status];
    box.append(make("div", { cls: "count " + status.toLowerCase() + (count ? "" : " zero") }, make("b", {}, count.toLocaleString("en")), make("span", {}, words),
      make("small", {}, `forward ${data.counts.forward[status].toLocaleString("en")}, backward ${data.counts.backward[status].toLocaleString("en")}`)));
  }
}

// --- errors of one output ---------------------------------------------------------------------

const EXPONENT = -12;  // the bin behind the equal ones ends at 1e-11, each one further at ten times that
function binText(at) {
  if (at === 0) return "equal";
  if (at === 15) return "NaN or infinity on one side";
  if (at === 1) return "below 1e-11";
  return at === 14 ? "10 and more" : `1e${at + EXPONENT - 1} to 1e${at + EXPONENT}`;
}
const binClass = (at) => (at === 0 ? "equal" : at === 15 ? "special" : "f3");

function miniature(histogram) {
  const most = Math.max(...histogram);
  const bars = histogram.map((count, at) => {
    const bar = make("i", { cls: binClass(at) });
    // Logarithmic, so that a single element is seen beside a million.
    bar.style.height = (count ? 3 + 19 * Math.log1p(count) / Math.log1p(most) : 0) + "px";
    return bar;
  });
  return make("span", { cls: "mini", title: "elements by relative error, from equal to not finite" }, ...bars);
}

function histogramPlot(histogram) {
  const width = 360, height = 190, bottom = 34, left = 8, step = (width - 2 * left) / histogram.length;
  const most = Math.max(1, ...histogram), total = histogram.reduce((sum, count) => sum + count, 0);
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Elements by relative error" });
  histogram.forEach((count, at) => {
    const size = count ? Math.max(2, (height - bottom - 10) * Math.log1p(count) / Math.log1p(most)) : 0;
    const bar = shape("rect", { x: left + at * step + 1, width: step - 2, y: height - bottom - size, height: size, class: binClass(at) });
    const words = `${binText(at)}\n${count.toLocaleString("en")} of ${plural(total, "element")}`;
    bar.addEventListener("mousemove", (e) => tip(words, e));
    bar.addEventListener("mouseleave", () => tip(""));
    svg.append(bar);
  });
  svg.append(shape("line", { class: "axis", x1: left, x2: width - left, y1: height - bottom, y2: height - bottom }));
  for (const [at, words] of [[0.5, "equal"], [4, "1e-9"], [7, "1e-6"], [10, "1e-3"], [13, "1"], [15.4, "NaN"]]) {
    svg.append(shape("text", { x: left + at * step, y: height - bottom + 15, "text-anchor": "middle" }, words));
  }
  svg.append(shape("text", { x: width / 2, y: height - 4, "text-anchor": "middle" }, "relative error, counts on a log scale"));
  return svg;
}

// A number in five digits, in all of its digits under the pointer.
const whole = (value) => make("span", { title: String(value) }, number(value));

// --- rows -------------------------------------------------------------------------------------

function selected() {
  const words = view.words.toLowerCase().split(/\s+/).filter(Boolean);
  return data.findings.filter((row) => {
    if (!view.statuses[row.status]) return false;
    const haystack = (row.name + " " + row.message + " " + row.shape + " " + row.device_dtype).toLowerCase();
    return words.every((word) => haystack.includes(word));
  });
}

function drawFilters() {
  const box = document.querySelector("#findings .filters");
  const changed = () => { view.shown = PAGE; drawRows(); };
  const search = make("input", { type: "search", placeholder: "API, cause, shape ...", "aria-label": "Filter",
    on: { input: () => { view.words = search.value; changed(); } } });
  box.append(search);
  for (const status of Object.keys(view.statuses)) {
    const tick = make("input", { type: "checkbox", checked: "", on: { change: () => { view.statuses[status] = tick.checked; changed(); } } });
    box.append(make("label", {}, tick, badge(status)));
  }
}

function drawRows() {
  const rows = selected(), list = document.querySelector("#findings .list");
  const lines = rows.slice(0, view.shown).map((row) => ({
    cls: "link" + (row === view.chosen ? " chosen" : ""), on: { click: () => choose(row) },
    cells: [badge(row.status), dotted(row.output), row.reason, row.device_dtype, row.shape,
      row.worst ? miniature(row.worst.histogram) : ""] }));
  list.replaceChildren(table([{ text: "status" }, { text: "output" }, { text: "why" }, { text: "dtype" }, { text: "shape" }, { text: "errors" }], lines));
  if (rows.length > view.shown) {
    list.append(make("p", { cls: "more" }, make("button", { cls: "plain", on: { click: () => { view.shown += 5 * PAGE; drawRows(); } } },
      `show more of the ${rows.length.toLocaleString("en")} rows`)));
  }
  byId("row-note").textContent = `${rows.length.toLocaleString("en")} of ${plural(data.finding_total, "output")} shown` +
    (data.findings.length < data.finding_total ? "; this page holds the worst ones, the details file all" : "") + ".";
}

function choose(row) {
  view.chosen = row;
  drawRows();
  const box = byId("detail");
  box.replaceChildren(make("h3", {}, row.name), badge(row.status), make("p", { cls: "message" }, row.message));
  if (row.as_test) box.append(make("h3", {}, "as a unit test"), make("p", {}, make("code", { cls: "command" }, row.as_test)));
  if (row.worst) {
    box.append(histogramPlot(row.worst.histogram), table([{ text: "worst element" }, { text: "benchmark", num: true }, { text: "device", num: true }],
      [{ cells: [make("code", {}, String(row.worst.index)), whole(row.worst.bench), whole(row.worst.device)] }]));
  }
  const lines = data.columns.filter((column) => row.numbers[column.key] !== undefined).map((column) =>
    ({ cells: [make("span", { title: column.header }, column.key.replaceAll("_", " ")), number(row.numbers[column.key])] }));
  lines.unshift({ cells: ["shape", row.shape] }, { cells: ["benchmark", row.bench_dtype] }, { cells: ["device", row.device_dtype] });
  box.append(table([{ text: "" }, { text: "", num: true }], lines));
}

// --- the rest ---------------------------------------------------------------------------------

function drawSkips() {
  const section = byId("skips");
  section.hidden = data.causes.length === 0;
  section.querySelector(".card").append(table([{ text: "cause" }, { text: "calls", num: true }, { text: "such as" }, { text: "" }],
    data.causes.map((cause) => ({ cells: [make("code", {}, cause.cause), cause.calls.toLocaleString("en"), dotted(cause.example), cause.detail] }))));
}

function drawNotes() {
  const words = make("dl");
  for (const [status, [, sentence]] of Object.entries(STATUS)) words.append(make("dt", {}, badge(status)), make("dd", {}, sentence));
  words.append(make("dt", {}, "errors"), make("dd", {}, "elements by their relative error, from equal (grey) over ten times more in each bar to NaN or infinity on one side (violet)"));
  byId("notes").append(words);
}

drawHeader();
drawAnswer();
drawCounts();
byId("findings").hidden = data.findings.length === 0;
drawFilters();
if (data.findings.length) choose(data.findings[0]);
drawSkips();
drawNotes();
