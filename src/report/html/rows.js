// The table of all rows: filtered, sorted, and drawn only as far as it is visible.

const LINE = 30;  // pixels, as in page.css
const UNIT = { statistics: ["max diff", "min diff", "mean diff", "norm diff", "max %", "min %", "mean %", "norm %"],
  tensor: ["cosine", "max abs error", "max rel error", "below 0.001", "below 0.005", "relative L2", "max ULP", "elements differing", "elements"],
  md5: ["target digest", "golden digest"] };
const view = { rows: [], sort: null, down: false, chosen: null, words: "", role: "", verdicts: [true, true, true, true, true] };

// Pixels that the longest name of a call takes: names are shown whole.
function nameWidth() {
  if (!part.nameWidth) {
    const letters = make("span", { cls: "mono" }, "0".repeat(100));
    letters.style.position = "absolute";
    document.body.append(letters);
    const longest = part.calls.reduce((most, call, i) => Math.max(most, callName(i).length), 12);
    part.nameWidth = Math.ceil(longest * letters.getBoundingClientRect().width / 100) + 18;
    letters.remove();
  }
  return part.nameWidth;
}

function columns() {
  const found = [
    { title: "verdict", width: 142, make: (r) => badge(r[VERDICT]), order: (r) => r[VERDICT] },
    { title: "error", width: 90, num: true, show: (r) => number(r[ERROR]), order: (r) => r[ERROR] },
    { title: "call", width: nameWidth(), cls: "name", show: (r) => callName(r[CALL]), order: (r) => r[CALL] },
    { title: "value", width: 130, cls: "name", show: (r) => (r[ITEM].startsWith(".") ? r[ITEM].slice(1) : r[ITEM]) },
    { title: "reason", width: 130, show: (r) => text(r[REASON]) },
    { title: "explained", width: 95, num: true, show: (r) => number(r[EXPLAINED]), order: (r) => r[EXPLAINED] },
    { title: "dtype", width: 130, show: (r) => both(r, DTYPE) },
    { title: "shape", width: 130, show: (r) => both(r, SHAPE) },
    { title: "upstream's result", width: 130, show: (r) => text(r[RESULT]) }];
  UNIT[part.header.mode].forEach((title, i) => found.push({ title, width: 110, num: part.header.mode !== "md5",
    show: (r) => number(r[METRICS] && r[METRICS][i]), order: (r) => r[METRICS] && r[METRICS][i] }));
  return found;
}

function select() {
  const words = view.words.toLowerCase().split(/\s+/).filter(Boolean);
  view.rows = part.rows.filter((row) => {
    if (!view.verdicts[row[VERDICT]]) return false;
    if (view.role !== "" && row[ROLE] !== Number(view.role)) return false;
    if (words.length === 0) return true;
    const haystack = (itemName(row) + " " + text(row[REASON]) + " " + both(row, DTYPE) + " " + both(row, SHAPE)).toLowerCase();
    return words.every((word) => haystack.includes(word));
  });
  if (view.sort) {
    const order = view.sort.order || view.sort.show, sign = view.down ? -1 : 1;
    const key = (row) => { const v = order(row); return v === undefined ? null : v; };
    const keyed = view.rows.map((row, at) => [key(row), at, row]);
    keyed.sort(([a, i], [b, k]) => {
      // What is no number goes last, whichever way the table is sorted.
      if (a === null || b === null) return (a === null) - (b === null) || i - k;
      if (typeof a === "number" && typeof b === "number") return sign * (a - b) || i - k;
      if (typeof a !== typeof b) return (typeof a === "number" ? -1 : 1);
      return sign * (a < b ? -1 : a > b ? 1 : 0) || i - k;
    });
    view.rows = keyed.map((entry) => entry[2]);
  }
  drawLines(true);
}

function drawLines(fromTop) {
  const grid = document.querySelector(".grid"), space = grid.querySelector(".grid-space");
  const body = grid.querySelector(".grid-body"), shown = columns();
  const widths = shown.map((c) => c.width + "px").join(" ");
  space.style.height = view.rows.length * LINE + "px";
  space.style.width = shown.reduce((sum, c) => sum + c.width, 0) + "px";
  if (fromTop) grid.scrollTop = 0;
  const first = Math.max(0, Math.floor(grid.scrollTop / LINE) - 10);
  const last = Math.min(view.rows.length, first + Math.ceil(grid.clientHeight / LINE) + 20);
  body.style.transform = `translateY(${first * LINE}px)`;
  body.replaceChildren(...view.rows.slice(first, last).map((row) => {
    const line = make("div", { cls: "line" + (row === view.chosen ? " chosen" : ""), role: "row", on: { click: () => pick(row) } });
    line.style.gridTemplateColumns = widths;
    for (const c of shown) {
      const shownText = c.show ? c.show(row) : null;
      line.append(make("span", { cls: (c.num ? "num " : "") + (c.cls || ""), role: "cell", title: shownText }, c.make ? c.make(row) : shownText));
    }
    return line;
  }));
  const total = part.row_total, here = part.rows.length;
  byId("row-note").textContent = `${view.rows.length.toLocaleString("en")} of ${here.toLocaleString("en")} rows shown.` +
    (total > here ? ` The recording has ${total.toLocaleString("en")} rows; this page holds the worst of them, the csv file all.` : "") +
    " Click a heading to sort, a row for its details; arrow keys move.";
}

function drawHead() {
  const head = document.querySelector(".grid-head"), shown = columns();
  head.style.gridTemplateColumns = shown.map((c) => c.width + "px").join(" ");
  head.replaceChildren(...shown.map((c) => {
    const active = view.sort && view.sort.title === c.title;
    const button = make("button", { cls: c.num ? "num" : "", role: "columnheader", title: "sort by " + c.title,
      "aria-sort": active ? (view.down ? "descending" : "ascending") : "none" }, c.title + (active ? (view.down ? " \u25be" : " \u25b4") : ""));
    button.addEventListener("click", () => {
      // Numbers: the largest first, then the smallest, then the order of the calls.
      if (!active) { view.sort = c; view.down = Boolean(c.num); }
      else if (view.down === Boolean(c.num)) view.down = !view.down;
      else view.sort = null;
      drawHead();
      select();
    });
    return button;
  }));
}

function drawFilters() {
  const box = document.querySelector(".filters");
  if (box.firstChild) return;
  const search = make("input", { type: "search", placeholder: "filter by name, reason, dtype, shape", "aria-label": "filter rows" });
  search.addEventListener("input", () => { view.words = search.value; select(); });
  const roles = make("select", { "aria-label": "kind of value" }, make("option", { value: "" }, "every kind of value"),
    ...ROLES.map((name, i) => make("option", { value: i }, name + "s")));
  roles.addEventListener("change", () => { view.role = roles.value; select(); });
  box.append(search, roles);
  VERDICTS.forEach((name, i) => {
    const check = make("input", { type: "checkbox", checked: "" });
    check.addEventListener("change", () => { view.verdicts[i] = check.checked; select(); });
    box.append(make("label", {}, check, badge(i)));
  });
}

function scrollToRow(at) {
  document.querySelector(".grid").scrollTop = Math.max(0, at - 4) * LINE;
}

function pick(row) {
  view.chosen = row;
  drawLines(false);
  drawDetail(row);
}

function showCall(call) {
  const of = part.rows.filter((row) => row[CALL] === call);
  if (of.length === 0) return;
  let at = view.rows.findIndex((row) => row[CALL] === call);
  if (at < 0) {  // hidden by a filter: show all
    document.querySelectorAll(".filters input").forEach((input) => { if (input.type === "checkbox") input.checked = true; else input.value = ""; });
    document.querySelector(".filters select").value = "";
    Object.assign(view, { words: "", role: "", verdicts: [true, true, true, true, true] });
    select();
    at = view.rows.findIndex((row) => row[CALL] === call);
  }
  byId("rows").scrollIntoView({ behavior: "smooth", block: "start" });
  scrollToRow(at);
  const outputs = of.filter((row) => row[ROLE] >= 2);
  pick([...(outputs.length ? outputs : of)].sort((a, b) => (b[VERDICT] === 3) - (a[VERDICT] === 3))[0]);
}

// --- one row ------------------------------------------------------------------------------------

function pairTable(row) {
  const lines = new Map();
  for (const side of [0, 1]) {
    const own = statistics(row, side);
    if (own === null) continue;
    statisticNames(own).forEach((name, i) => {
      if (!lines.has(name)) lines.set(name, ["", ""]);
      lines.get(name)[side] = number(own[i]);
    });
  }
  return table([{ text: "" }, { text: "target", num: true }, { text: "golden", num: true }],
    [...lines].map(([name, cells]) => ({ cells: [name, ...cells] })));
}

// Names of the metrics that say something of this row, with their places.
function metricNames(row) {
  const names = UNIT[part.header.mode].map((name, i) => [name, i]);
  const isArgument = [0, 1].every((side) => (statistics(row, side) || []).length === 1);
  if (!isArgument) return names;
  return part.header.mode === "statistics" ? [["difference", 0], ["difference %", STATISTICS.length]] : [];
}

function drawDetail(row) {
  const box = byId("detail"), call = part.calls[row[CALL]];
  const facts = [{ cells: ["error", number(row[ERROR])] }, { cells: ["explained", number(row[EXPLAINED])] }];
  if (ratio(row)) facts.push({ cells: ["error / explained", number(ratio(row))] });
  metricNames(row).forEach(([name, i]) => facts.push({ cells: [name, number(row[METRICS] && row[METRICS][i])] }));
  box.replaceChildren(make("h3", {}, itemName(row)), make("p", {}, badge(row[VERDICT]), make("span", { cls: "dim" }, "  " + reasonText(row))),
    make("p", {}, make("code", {}, both(row, DTYPE) + " " + both(row, SHAPE))));
  if (call[3] !== undefined) box.append(make("p", {}, "This call has no counterpart: " + text(call[3])));
  if (part.header.mode !== "md5") box.append(pairTable(row));
  const known = facts.filter((fact) => fact.cells[1] !== "");
  if (statistics(row, 0) && statistics(row, 1) && known.length) box.append(table([{ text: "" }, { text: "", num: true }], known));
  for (const [code, note] of row[NOTES] || []) box.append(make("p", { cls: "note" }, `[${text(code)}] ${text(note)}`));
  const frames = stackOf(row[CALL]);
  if (frames.length) box.append(make("h3", {}, "Call stack"), stackList(frames));
}

function startGrid() {
  const grid = document.querySelector(".grid");
  let waiting = false;
  grid.addEventListener("scroll", () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; drawLines(false); });
  });
  grid.addEventListener("keydown", (event) => {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (!step || view.rows.length === 0) return;
    event.preventDefault();
    const at = Math.max(0, Math.min(view.rows.length - 1, view.rows.indexOf(view.chosen) + step));
    if (at * LINE < grid.scrollTop) grid.scrollTop = at * LINE;
    if ((at + 3) * LINE > grid.scrollTop + grid.clientHeight) grid.scrollTop = (at + 3) * LINE - grid.clientHeight;
    pick(view.rows[at]);
  });
}
