// Several ranks on one page: the answer over all, a line per rank, and where each goes wrong.

function labelOf(rank) {
  const name = typeof rank.rank === "number" ? "rank " + rank.rank : (rank.target || rank.golden || "rank").split("/").pop();
  return (rank.step === null ? "" : "step " + rank.step + " ") + name;
}

// What the lines of the page are: "rank", or "step" where each step has one rank.
function unit() {
  return data.overview && data.overview.unit === "step" ? "step" : "rank";
}

// Which part of the page holds a rank of the overview; -1: it could not be compared.
function partOf(rank) {
  return data.parts.findIndex((p) => p.label === labelOf(rank));
}

// What a rank's first wrong call has to do with the answer over all ranks.
function standing(rank) {
  if (rank.state === "missing") return "not on both sides";
  if (rank.state === "failed") return rank.error;
  if (!rank.wrong_calls) return rank.complete ? "nothing wrong" : "nothing wrong in what could be judged";
  const at = data.overview.origins.findIndex((o) => o.step === rank.step && o.rank === rank.rank);
  if (at === 0) return "it starts here";
  if (at > 0) return "goes wrong on its own too";
  const first = data.overview.origins[0];
  if (first && first.step !== rank.step) return "follows: step " + first.step + " is wrong";
  return "follows: wrong values come from another rank";
}

function firstOf(rank) {
  const own = partOf(rank);
  const answer = own >= 0 ? data.parts[own].header.first_wrong_call : null;
  return answer ? dotted(answer.name) : rank.wrong_calls ? "" : "none";
}

function drawRanks() {
  const box = byId("ranks"), overview = data.overview;
  box.hidden = !overview;
  if (box.hidden) return;
  const counts = (rank, name) => (rank.counts ? rank.counts[name].toLocaleString("en") : "");
  const first = overview.origins[0];
  const rows = overview.ranks.map((rank) => {
    const at = partOf(rank), isAnswer = first && first.step === rank.step && first.rank === rank.rank;
    const name = make("button", { cls: "plain", "aria-pressed": String(data.parts[at] === part) }, labelOf(rank));
    if (at < 0) name.disabled = true;
    return { cls: (at < 0 ? "" : "link") + (isAnswer ? " hit" : "") + (data.parts[at] === part ? " chosen" : ""),
      on: at < 0 ? {} : { click: () => choose(at) },
      cells: [name, standing(rank), firstOf(rank), counts(rank, "within noise"), counts(rank, "suspicious"), counts(rank, "broken"), counts(rank, "not comparable")] };
  });
  const list = make("div", { cls: "card scroll w12" }, table([{ text: unit() }, { text: "what happens there" }, { text: "its first wrong call" },
    ...["within noise", "suspicious", "broken", "not comparable"].map((t) => ({ text: t, num: true }))], rows));
  const notes = overview.notes.map((note) => make("p", { cls: "note" }, "Not judged: " + note));
  box.replaceChildren(make("h2", {}, unit() === "step" ? "Steps" : "Ranks"), make("div", { cls: "cards" }, list, drawStrips()), ...notes,
    make("h2", { cls: "of-part" }, part.label), make("p", { cls: "of-part" }, part.answer));
  const chosen = list.querySelector("tr.chosen");
  if (chosen) list.scrollTop = chosen.offsetTop - list.clientHeight / 2;
}

// One strip per rank along the call order, coloured by verdict; larger errors are stronger.
function drawStrips() {
  const line = Math.max(9, Math.min(26, 520 / data.parts.length)), above = 6, left = 120, width = WIDE, height = above + line * data.parts.length + 34;
  const svg = shape("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": "Verdicts along the call order, one line per " + unit() });
  const last = Math.max(1, ...data.parts.map((p) => p.calls.length));
  const px = (call) => left + call / last * (width - left - 14);
  data.parts.forEach((p, i) => {
    const top = above + i * line, every = Math.ceil(data.parts.length / 40);
    if (i % every === 0) svg.append(shape("text", { x: left - 8, y: top + line / 2 + 4, "text-anchor": "end", class: p === part ? "now" : "" }, p.label));
    // Neighbours that look alike are one mark: many ranks have many calls.
    for (let k = 0; k < p.growth.length;) {
      const point = p.growth[k], look = strength(point);
      let next = k + 1;
      while (next < p.growth.length && p.growth[next][3] === point[3] && strength(p.growth[next]) === look) next += 1;
      const end = next < p.growth.length ? p.growth[next][0] : p.calls.length;
      svg.append(shape("rect", { x: px(point[0]), y: top + 1, width: Math.max(1, px(end) - px(point[0])), height: line - 2,
        class: `f${point[3]}`, "fill-opacity": look }));
      k = next;
    }
    if (p.growth.length > 0) svg.append(stripTarget(p, { x: left, y: top, width: width - left - 14, height: line }, last));
    const answer = p.header.first_wrong_call;
    const at = answer ? p.calls.findIndex((c) => c[0] === answer.name || c[1] === answer.name) : -1;
    if (at >= 0) svg.append(shape("line", { class: "first", x1: px(at), x2: px(at), y1: top, y2: top + line }));
  });
  svg.append(shape("text", { x: (left + width) / 2, y: height - 6, "text-anchor": "middle" }, "call"));
  return make("div", { cls: "card w12" }, make("h3", {}, `Where each ${unit()} goes wrong, in call order`),
    legend([...VERDICTS.map((_, i) => badge(i)), make("span", {}, make("span", { cls: "bar-key" }), "first wrong call of the " + unit())]), svg);
}

// What takes the mouse over one rank's strip.
function stripTarget(p, box, last) {
  const node = shape("rect", { class: "pick", ...box, "fill-opacity": 0 });
  const pointAt = (event) => {
    const area = node.getBoundingClientRect(), call = (event.clientX - area.left) / area.width * last;
    return p.growth.reduce((best, point) => (point[0] <= call ? point : best), p.growth[0]);
  };
  node.addEventListener("mousemove", (event) => {
    const point = pointAt(event), call = p.calls[point[0]];
    tip(`${p.label} ${call[0] || call[1]}\n${VERDICTS[point[3]]}, error ${number(point[1])}`, event);
  });
  node.addEventListener("mouseleave", () => tip(""));
  node.addEventListener("click", (event) => { const point = pointAt(event); choose(data.parts.indexOf(p)); showCall(point[0]); });
  return node;
}

function strength(point) {
  if (point[3] <= 1) return 0.35;
  if (point[3] === 4) return 0.3;
  const size = typeof point[1] === "number" && point[1] > 0 ? Math.log10(point[1]) : 0;
  return Math.max(0.35, Math.min(1, 0.9 + size / 8)).toFixed(1);
}
