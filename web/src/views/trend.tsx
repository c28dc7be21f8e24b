// Statistics over steps: of a trend database as a heat map, lines and alerts; of a graph, the selected
// value's.
import { useMemo, useRef, useState } from "preact/hooks";
import { kindOf } from "../dataset_kind";
import { formatCount, formatError, formatNumber, formatShort } from "../format";
import { GAP, numberColour, type Ramp } from "../parts/colours";
import { HeatMap, Legend, type Cell } from "../parts/heat_map";
import { Answer, Choose, keep, Notes, Tabs, Trouble, useAsked, useRedraw, type ViewProps } from "../parts/kit";
import { LINE_COLOURS, LineChart, type Line } from "../parts/line_chart";
import { Pages } from "../parts/pages";
import { scaleOf, symmetric, type Scale, type ScaleKind } from "../parts/scale";
import { Table, type Column } from "../parts/table";
import { success, type Failure, type Result } from "../result";
import { NO_STATE } from "../state";
import * as t from "../trend_answers";
import { NodeTrend } from "./node_trend";
import { ParallelLayout, sizesOf } from "./parallel_layout";

const TILE = 200;
const DIMENSIONS = ["module", "step", "rank"] as const;
const SECTIONS = ["lines", "alerts", "layout"] as const;
const SCALES = ["symlog", "log", "linear", "sigma"] as const;

type AskTile = (x: number, y: number) => Promise<Result<t.Heat>>;

// The cells of a heat map, asked for tile by tile as they come into sight.
class Tiles {
  x: t.HeatAxis | null = null;
  y: t.HeatAxis | null = null;
  low = Infinity;
  high = -Infinity;
  mean: number | null = null;
  deviation: number | null = null;
  notes: readonly string[] = [];
  failure: Failure | null = null;
  readonly #tiles = new Map<string, t.Heat | null>();
  readonly #ask: AskTile;
  readonly #changed: () => void;

  constructor(ask: AskTile, changed: () => void) {
    this.#ask = ask;
    this.#changed = changed;
    void this.#load(0, 0);
  }

  #tile(row: number, column: number): t.Heat | null | undefined {
    return this.#tiles.get(`${Math.floor(column / TILE)} ${Math.floor(row / TILE)}`);
  }

  cell(row: number, column: number): number | null {
    const tile = this.#tile(row, column);
    return tile?.cells[row % TILE]?.[column % TILE] ?? null;
  }

  label(axis: "x" | "y", i: number): t.Label | undefined {
    for (const tile of this.#tiles.values()) {
      const label = tile?.[axis].labels[i - tile[axis].offset];
      if (label !== undefined) return label;
    }
    return undefined;
  }

  want(rows: { from: number; to: number }, columns: { from: number; to: number }): void {
    for (let y = Math.floor(rows.from / TILE); y * TILE < rows.to; y++) {
      for (let x = Math.floor(columns.from / TILE); x * TILE < columns.to; x++) {
        if (!this.#tiles.has(`${x} ${y}`)) void this.#load(x, y);
      }
    }
  }

  async #load(x: number, y: number): Promise<void> {
    this.#tiles.set(`${x} ${y}`, null);
    const got = await this.#ask(x * TILE, y * TILE);
    if (got.ok) {
      const heat = got.value;
      this.#tiles.set(`${x} ${y}`, heat);
      this.x ??= heat.x;
      this.y ??= heat.y;
      this.low = Math.min(this.low, heat.min ?? Infinity);
      this.high = Math.max(this.high, heat.max ?? -Infinity);
      this.mean ??= heat.mean;
      this.deviation ??= heat.deviation;
      this.notes = [...new Set([...this.notes, ...heat.notes])];
    } else {
      this.failure = got.error;
    }
    this.#changed();
  }
}

export function TrendView(props: ViewProps) {
  return kindOf(props.context.session.meta) === "trend" ? <Database {...props} /> : <NodeTrend {...props} />;
}

function Database(props: ViewProps) {
  const { context, state } = props;
  const { api, session, say } = context;
  const { metric = "", tags = "", q = "" } = state.extra;
  const path = `d/${encodeURIComponent(session.dataset)}/trend`;
  const meta = useAsked(() => api.ask(`${path}/meta`, without({ metric, tags, q, limit: 200 }), t.trendMeta), [path, metric, tags, q]);
  return <Answer asked={meta} say={say}>{(value) => value.metric === "" ? <p class="quiet">{say("trend.no-metric")}</p> : <Charts {...props} meta={value} path={path} />}</Answer>;
}

const without = (parameters: Readonly<Record<string, string | number>>): Record<string, string | number> =>
  Object.fromEntries(Object.entries(parameters).filter(([, value]) => value !== ""));

interface ChartProps extends ViewProps {
  readonly meta: t.TrendMeta;
  readonly path: string;
}

// What is asked in every question: which numbers.
interface Chosen {
  readonly metric: string;
  readonly stat: string;
  readonly dimension: t.AxisKind;
  readonly value: string;
  readonly against: string;
}

function chosenOf({ state, meta }: ChartProps): Chosen {
  const { extra } = state;
  const metric = meta.metric;
  const known = meta.metrics.find(({ name }) => name === metric)?.statistics ?? [];
  const stat = known.find((name) => name === extra["stat"]) ?? known.find((name) => name === "norm") ?? known[0] ?? "";
  const dimension = DIMENSIONS.find((name) => name === extra["dim"]) ?? "rank";
  const values = dimension === "step" ? meta.steps : dimension === "rank" ? meta.ranks : meta.targets.rows.map(({ id }) => id);
  const value = extra["at"] ?? String((dimension === "step" ? values.at(-1) : values[0]) ?? "");
  return { metric, stat, dimension, value, against: extra["against"] ?? "" };
}

function Charts(props: ChartProps) {
  const { context, state, meta, path } = props;
  const { api, say } = context;
  const chosen = chosenOf(props);
  const redraw = useRedraw();
  const [cursor, setCursor] = useState<Cell>({ row: 0, column: 0 });
  const datasets = useAsked(() => api.datasets(), []);
  const others = datasets.ok ? datasets.value.datasets.filter(({ state: is }) => is === "ready") : [];
  const { tags = "", q = "" } = state.extra;
  const asked = JSON.stringify([path, chosen, tags, q]);
  const tiles = useMemo(() => new Tiles((x, y) => api.ask(`${path}/heat`, without({
    ...chosen, tags, q, x_offset: x, y_offset: y, x_limit: TILE, y_limit: TILE,
  }), t.heat), redraw), [asked]);
  const graph = others.find(({ kind }) => kind === "graph");

  const placeOf = (cell: Cell): { target: t.Target; rank: number; step: number } | null => {
    const labels = { x: tiles.label("x", cell.column), y: tiles.label("y", cell.row) };
    const fixedTarget = meta.targets.rows.find(({ id }) => String(id) === chosen.value);
    const of = (kind: t.AxisKind): t.Label | undefined =>
      tiles.x?.kind === kind ? labels.x : tiles.y?.kind === kind ? labels.y : kind === "module" ? fixedTarget : Number(chosen.value);
    const [target, rank, step] = [of("module"), of("rank"), of("step")];
    return typeof target === "object" && typeof rank === "number" && typeof step === "number" ? { target, rank, step } : null;
  };
  const addLine = (target: t.Target, rank: number): void => {
    const own = `${target.id}:${rank}`;
    const lines = (state.extra["lines"] ?? "").split(",").filter((line) => line !== "" && line !== own);
    keep(context, state, { lines: [...lines, own].slice(-6).join(",") });
  };
  const openNode = (place: { target: t.Target; rank: number; step: number } | null): boolean => {
    if (!place) return false;
    if (!graph) context.notice(say("trend.no-graph"));
    else context.go({ ...NO_STATE, dataset: graph.id, step: place.step, rank: place.rank, node: nodeOf(place.target) });
    return true;
  };
  const nodeOf = (target: t.Target): string => t.nodeName(target, chosen.metric);
  const section = SECTIONS.find((key) => key === state.extra["show"]) ?? "lines";
  const world = Math.max(-1, ...meta.ranks) + 1;
  return (
    <>
      <Choices {...props} chosen={chosen} others={others.filter(({ id, kind }) => kind === "trend" && id !== context.session.dataset)} />
      {!meta.exact_steps && <p class="quiet">! {say("trend.steps-guessed")}</p>}
      {tiles.failure && <Trouble error={tiles.failure} say={say} />}
      <Notes notes={tiles.notes} />
      <div class="trend-map">
        <HeatCells tiles={tiles} cursor={cursor} move={setCursor} chosen={chosen} {...props}
          open={(cell) => {
            const place = placeOf(cell);
            if (place) addLine(place.target, place.rank);
          }}
          press={(event) => event.key === "n" && openNode(placeOf(cursor))}
          describe={(cell) => {
            const place = placeOf(cell);
            return place ? `${t.targetLabel(place.target)}, ${say("bar.rank")} ${place.rank}, ${say("bar.step")} ${place.step}` : "";
          }} />
        <p class="bar-of-fields">
          <button type="button" onClick={() => {
            const place = placeOf(cursor);
            if (place) addLine(place.target, place.rank);
          }}>{say("trend.add-line")} (Enter)</button>
          <button type="button" disabled={!graph} onClick={() => openNode(placeOf(cursor))}>{say("trend.open-node")} (N)</button>
          <button type="button" onClick={() => keep(context, state, { lines: "" })}>{say("trend.clear")}</button>
        </p>
      </div>
      <Tabs label={say("trend.sections")} value={section} choose={(show) => keep(context, state, { show })}
        choices={SECTIONS.map((key) => ({ key, text: say(`trend.${key}`) }))} />
      <div class="section" role="tabpanel" aria-label={say(`trend.${section}`)}>
        {section === "layout" && <ParallelLayout {...props} sizes={sizesOf(props, world)} />}
        {section === "lines" && <Lines {...props} chosen={chosen} openNode={openNode} />}
        {section === "alerts" && <Alerts {...props} chosen={chosen} open={(alert) => addLine(alert.target, alert.rank)} openNode={openNode} />}
      </div>
    </>
  );
}

function Choices({ context, state, meta, chosen, others }: ChartProps & { chosen: Chosen; others: readonly { id: string; title: string }[] }) {
  const { say } = context;
  const change = (what: Readonly<Record<string, string>>): void => keep(context, state, what);
  const plain = (values: readonly (string | number)[]) => values.map((value) => ({ key: String(value), text: String(value) }));
  const values = chosen.dimension === "module" ? meta.targets.rows.map((each) => ({ key: String(each.id), text: t.targetLabel(each) }))
    : plain(chosen.dimension === "step" ? meta.steps : meta.ranks);
  const tags = (state.extra["tags"] ?? "").split(",").filter((tag) => tag !== "");
  const known = Object.entries(meta.tags).flatMap(([category, names]) => names.map((name) => ({ key: name, text: `${category}: ${name}` })));
  const limit = (key: "low" | "high") => (
    <label class="field">{say(`trend.${key}`)}{" "}
      <input type="number" step="any" value={state.extra[key] ?? ""} onChange={(event) => change({ [key]: event.currentTarget.value })} />
    </label>
  );
  return (
    <div class="bar-of-fields">
      <Choose label={say("trend.metric")} value={chosen.metric} choices={plain(meta.metrics.map(({ name }) => name))}
        choose={(metric) => change({ metric, lines: "", tags: "", at: "" })} />
      <Choose label={say("trend.statistic")} value={chosen.stat} choose={(stat) => change({ stat })}
        choices={plain(meta.metrics.find(({ name }) => name === chosen.metric)?.statistics ?? [])} />
      <Choose label={say("trend.fixed")} value={chosen.dimension} choose={(dim) => change({ dim, at: "" })}
        choices={DIMENSIONS.map((key) => ({ key, text: say(`trend.dimension.${key}`) }))} />
      <Choose label={say(`trend.dimension.${chosen.dimension}`)} value={chosen.value} choices={values} choose={(at) => change({ at })} />
      {chosen.dimension === "module" && meta.targets.total > meta.targets.rows.length &&
        <span class="quiet">{say("trend.more-targets", meta.targets.rows.length, formatCount(meta.targets.total))}</span>}
      <label class="field">{say("trend.name")}{" "}
        <input type="search" value={state.extra["q"] ?? ""} onChange={(event) => change({ q: event.currentTarget.value })} />
      </label>
      <Choose label={say("trend.tag")} value="" choose={(tag) => tag !== "" && change({ tags: [...tags, tag].join(",") })}
        choices={[{ key: "", text: "+" }, ...known.filter(({ key }) => !tags.includes(key))]} />
      {tags.map((tag) => (
        <button key={tag} type="button" title={say("trend.remove-tag")} onClick={() => change({ tags: tags.filter((each) => each !== tag).join(",") })}>{tag} ✕</button>
      ))}
      {others.length > 0 && (
        <Choose label={say("trend.against")} value={chosen.against} choose={(against) => change({ against })}
          choices={[{ key: "", text: say("trend.alone") }, ...others.map(({ id, title }) => ({ key: id, text: title }))]} />
      )}
      <Choose label={say("value.colour-scale")} value={state.extra["scale"] ?? "symlog"} choose={(scale) => change({ scale })}
        choices={SCALES.map((key) => ({ key, text: say(`scale.${key}`) }))} />
      {limit("low")}{limit("high")}
    </div>
  );
}

interface Colours {
  readonly scale: Scale;
  readonly ramp: Ramp;
  // What is coloured instead of a value.
  value(value: number): number;
}

// Seven pieces around the mean, one deviation wide, or a scale over all that was seen.
function coloursOf({ state, chosen }: { state: ViewProps["state"]; chosen: Chosen }, tiles: Tiles): Colours {
  const { scale: wanted = "symlog", low = "", high = "" } = state.extra;
  const { mean, deviation } = tiles;
  if (wanted === "sigma" && mean !== null && deviation !== null && deviation > 0) {
    const piece = (value: number): number => mean + deviation * Math.min(3, Math.max(-3, Math.round((value - mean) / deviation)));
    return { scale: scaleOf("linear", mean - 3 * deviation, mean + 3 * deviation), ramp: "diverging", value: piece };
  }
  const seen = tiles.low <= tiles.high ? { low: tiles.low, high: tiles.high } : { low: 0, high: 1 };
  const range = chosen.against === "" ? seen : symmetric(seen);
  const kind: ScaleKind = wanted === "linear" || wanted === "log" ? wanted : "symlog";
  const scale = scaleOf(kind, low === "" ? range.low : Number(low), high === "" ? range.high : Number(high));
  return { scale, ramp: chosen.against === "" ? "sequential" : "diverging", value: (value) => value };
}

interface HeatCellsProps extends ChartProps {
  readonly tiles: Tiles;
  readonly cursor: Cell;
  readonly chosen: Chosen;
  move(cell: Cell): void;
  open(cell: Cell): void;
  press(event: KeyboardEvent): boolean;
  describe(cell: Cell): string;
}

function HeatCells(props: HeatCellsProps) {
  const { tiles, cursor, chosen, context } = props;
  const { say } = context;
  const { x, y } = tiles;
  if (!x || !y) return <p class="quiet" role="status">{tiles.failure ? "" : say("app.loading")}</p>;
  if (x.total === 0 || y.total === 0) return <p class="quiet">{say("trend.empty")}</p>;
  const { scale, ramp, value: shade } = coloursOf(props, tiles);
  const name = (label: t.Label | undefined): string => (label === undefined ? "…" : typeof label === "number" ? String(label) : t.targetLabel(label));
  const title = `${chosen.metric} ${chosen.stat}${chosen.against === "" ? "" : ` ${say("trend.difference")}`}: ${say(`trend.dimension.${x.kind}`)} × ${say(`trend.dimension.${y.kind}`)}`;
  return (
    <>
      <HeatMap title={title} say={say} rows={y.total} columns={x.total} cursor={cursor} move={props.move} open={props.open} press={props.press}
        least={{ width: 8, height: 17 }} most={{ width: 90, height: 26 }} shown={(rows, columns) => tiles.want(rows, columns)}
        colour={(row, column) => {
          const value = tiles.cell(row, column);
          return value === null ? GAP : numberColour(Number.isNaN(value) ? value : shade(value), scale, ramp);
        }}
        text={(row, column) => {
          const value = tiles.cell(row, column);
          return value === null ? "" : formatShort(value);
        }}
        rowLabel={(row) => name(tiles.label("y", row))} columnLabel={(column) => name(tiles.label("x", column))}
        describe={(row, column) => {
          const value = tiles.cell(row, column);
          return `${props.describe({ row, column })}: ${value === null ? say("chart.gap") : formatNumber(value)}`;
        }} />
      <Legend scale={scale} ramp={ramp} say={say} title={title} />
    </>
  );
}

type OpenNode = (place: { target: t.Target; rank: number; step: number }) => boolean;

function Lines({ context, state, path, chosen, openNode }: ChartProps & { chosen: Chosen; openNode: OpenNode }) {
  const { api, say } = context;
  const wanted = (state.extra["lines"] ?? "").split(",").filter((line) => line !== "");
  const { metric, stat, against } = chosen;
  const asked = useAsked(async () => {
    const answers = await Promise.all(wanted.map((line) => {
      const [targets = "", ranks = ""] = line.split(":");
      return api.ask(`${path}/line`, without({ metric, stat, along: "step", targets, ranks, against }), t.trendLines);
    }));
    const failed = answers.find((answer) => !answer.ok);
    return failed && !failed.ok ? failed : success(answers.flatMap((answer) => (answer.ok ? [answer.value] : [])));
  }, [path, metric, stat, against, wanted.join()]);
  const answers = asked.ok ? asked.value : [];
  const { x, lines } = useMemo(() => joined(answers, say("trend.other-run")), [asked]);
  if (wanted.length === 0) return <p class="quiet">{say("trend.no-lines")}</p>;
  const kind = state.extra["scale"] === "linear" ? "linear" : state.extra["scale"] === "log" ? "log" : "symlog";
  const first = answers[0]?.series[0];
  return (
    <Answer asked={asked} say={say}>
      {() => <LineChart title={`${metric} ${stat}`} xLabel={say("bar.step")} x={x} lines={lines} scale={kind} say={say}
        open={(i) => first && openNode({ target: first.target, rank: first.rank ?? 0, step: x[i] ?? 0 })} />}
    </Answer>
  );
}

// Several answers over one axis; what one of them does not have is a gap.
export function joined(answers: readonly t.TrendLines[], otherRun: string): { readonly x: readonly number[]; readonly lines: readonly Line[] } {
  const x = [...new Set(answers.flatMap((answer) => answer.x))].sort((a, b) => a - b);
  const lines = answers.flatMap((answer, i) => answer.series.map((series): Line => {
    const at = new Map(answer.x.map((step, j) => [step, series.values[j] ?? null]));
    return {
      label: `${t.targetLabel(series.target)} · rank ${series.rank ?? ""}${series.side === "against" ? ` · ${otherRun}` : ""}`,
      values: x.map((step) => at.get(step) ?? null),
      colour: LINE_COLOURS[i % LINE_COLOURS.length] ?? "--line-1",
      isDashed: series.side === "against",
    };
  }));
  return { x, lines };
}

interface AlertProps extends ChartProps {
  readonly chosen: Chosen;
  open(alert: t.TrendAlert): void;
  readonly openNode: OpenNode;
}

function Alerts({ context, state, path, chosen, open, openNode }: AlertProps) {
  const { api, say } = context;
  const redraw = useRedraw();
  const rule = useRef("");
  const { tags = "", q = "" } = state.extra;
  const { metric, stat } = chosen;
  const pages = useMemo(() => new Pages<t.TrendAlert>(async (offset, limit) => {
    const got = await api.ask(`${path}/alerts`, without({ metric, stat, tags, q, offset, limit }), t.trendAlerts);
    if (!got.ok) return got;
    rule.current = got.value.rule;
    return success({ total: got.value.total, rows: got.value.alerts });
  }, 100, redraw), [path, metric, stat, tags, q]);
  const columns: readonly Column<t.TrendAlert>[] = [
    { title: say("bar.step"), width: "6em", isNumber: true, cell: (alert) => alert.step },
    { title: say("bar.rank"), width: "5em", isNumber: true, cell: (alert) => alert.rank },
    { title: say("open.column.kind"), width: "9em", cell: (alert) => `! ${say(`trend.alert.${alert.kind}`)}` },
    { title: say("value.value"), width: "9em", isNumber: true, cell: (alert) => formatNumber(alert.value) },
    { title: "z", width: "6em", isNumber: true, cell: (alert) => formatError(alert.z) },
    { title: say("trend.ratio"), width: "7em", isNumber: true, cell: (alert) => formatError(alert.ratio) },
    { title: say("trend.dimension.module"), width: "minmax(14em, 1fr)", cell: (alert) => <bdi class="mono">{t.targetLabel(alert.target)}</bdi> },
  ];
  return (
    <>
      {pages.failure && <Trouble error={pages.failure} say={say} />}
      <p class="quiet">{rule.current} {pages.total >= 0 && say("trend.alert-count", formatCount(pages.total))}</p>
      <Table label={say("trend.alerts")} columns={columns} total={pages.total} row={(i) => pages.row(i)} want={(from, to) => pages.want(from, to)}
        open={open} press={(event, alert) => event.key === "n" && openNode(alert)} />
    </>
  );
}
