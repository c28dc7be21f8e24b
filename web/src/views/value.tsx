// The elements of one value: how they and their errors are distributed, any slice of them, the worst
// of them, and the channels. Needs tensors on disk; says so where there are none.
import { useMemo, useState } from "preact/hooks";
import type { Decoder } from "../decode";
import { formatCount, formatError, formatNumber, formatShape, formatShort } from "../format";
import { levelOfVerdict, SYMBOL } from "../marks";
import { Bars } from "../parts/bars";
import { numberColour } from "../parts/colours";
import { zoomed, type Range } from "../parts/grid";
import { HeatMap, Legend, type Cell } from "../parts/heat_map";
import { Answer, Check, Choose, Facts, keep, Notes, Slider, Tabs, useAsked, type Asked, type ViewProps } from "../parts/kit";
import { LineChart, type Line } from "../parts/line_chart";
import { scaleOf, symmetric, type ScaleKind } from "../parts/scale";
import { Table, type Column } from "../parts/table";
import type { Say } from "../texts";
import type { NodeDetails, ValuePair } from "../types";
import * as v from "../value_answers";

// Elements on each side of one that is looked at.
const AROUND = 6;
const SECTIONS = ["counts", "errors", "slice", "worst", "channels"] as const;
const SPECIAL = ["nan", "inf", "minus_inf", "zero", "subnormal"] as const;
const SPECIAL_NAMES = ["NaN", "+Inf", "−Inf", "0", "subnormal"];
const SIDE_KEYS: Readonly<Record<string, v.SliceSide>> = { d: "target", b: "golden", x: "difference" };

interface SectionProps extends ViewProps {
  readonly say: Say;
  // Asks `what` of the value that is shown, again when `parameters` change.
  use<T>(what: string, parameters: Readonly<Record<string, string | number>>, answer: Decoder<T>): Asked<T>;
}

function Counts({ say, state, context, use }: SectionProps) {
  const scale = state.extra["scale"] === "linear" ? "linear" : "symlog";
  const isLog = state.extra["counts"] !== "linear";
  const histogram = use("histogram", { scale }, v.histogram);
  const stats = use("stats", {}, v.valueStats);
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.scale")} value={scale} choose={(key) => keep(context, state, { scale: key })}
          choices={[{ key: "symlog", text: say("scale.symlog") }, { key: "linear", text: say("scale.linear") }]} />
        <Check label={say("value.log-counts")} checked={isLog} change={(on) => keep(context, state, { counts: on ? "" : "linear" })} />
      </div>
      <Answer asked={histogram} say={say}>{(value) => <BothCounts value={value} isLog={isLog} say={say} />}</Answer>
      <Answer asked={stats} say={say}>{(value) => <Statistics value={value} say={say} />}</Answer>
    </>
  );
}

function BothCounts({ value, isLog, say }: { value: v.Histogram; isLog: boolean; say: Say }) {
  const { edges, target, golden } = value;
  const edge = (i: number): string => formatShort(edges[i] ?? 0);
  const of = (side: v.SideCounts | null): number[] => SPECIAL.map((name) => side?.[name] ?? 0);
  const down = (counts: readonly number[] | undefined) => (target && golden ? counts : undefined);
  return (
    <>
      <Notes notes={value.notes} />
      <div class="beside">
        <Bars title={say("value.histogram")} up={(target ?? golden)?.counts ?? []} down={down(golden?.counts)} isLog={isLog} say={say}
          mark={edge} label={(i) => `${edge(i)} … ${edge(i + 1)}`} />
        <Bars title={say("value.special")} up={of(target ?? golden)} down={down(of(golden))} isLog={isLog} say={say}
          mark={(i) => SPECIAL_NAMES[i] ?? ""} label={(i) => SPECIAL_NAMES[i] ?? ""} />
      </div>
    </>
  );
}

function Statistics({ value, say }: { value: v.ValueStats; say: Say }) {
  const sides = [value.target, value.golden, value.difference];
  const head = ["", say("side.target"), say("side.golden"), say("value.difference")];
  const row = (name: string, read: (side: v.Distribution) => string): string[] =>
    [name, ...sides.map((side) => (side ? read(side) : ""))];
  const finite = (side: v.Distribution): number => side.elements - side.nan - side.inf - side.minus_inf;
  // Without finite elements there is no number to show.
  const number = (name: string, read: (side: v.Distribution) => number): string[] =>
    row(name, (side) => (finite(side) > 0 ? formatNumber(read(side)) : say("value.no-finite")));
  return (
    <div class="beside">
      <Facts caption={say("value.statistics")} head={head} rows={[
        ["dtype", value.target?.dtype ?? "", value.golden?.dtype ?? "", ""],
        [say("details.column.shape"), formatShape(value.target?.shape ?? null), formatShape(value.golden?.shape ?? null), ""],
        row(say("value.elements"), (side) => formatCount(side.elements)),
        ...SPECIAL.map((name, i) => row(SPECIAL_NAMES[i] ?? name, (side) => formatCount(side[name]))),
        number(say("details.column.min"), (side) => side.min),
        number(say("details.column.max"), (side) => side.max),
        number(say("details.column.mean"), (side) => side.mean),
        number(say("details.column.norm"), (side) => side.norm),
      ]} />
      <Facts caption={say("value.quantiles")} head={head} rows={value.quantiles_at.map((share, i) =>
        number(`${Number((share * 100).toPrecision(6))} %`, (side) => side.quantiles[i] ?? NaN))} />
    </div>
  );
}

function ErrorCounts({ say, state, context, use }: SectionProps) {
  const kind = state.extra["error"] === "relative" ? "relative" : "absolute";
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.section.errors")} value={kind} choose={(key) => keep(context, state, { error: key })}
          choices={[{ key: "absolute", text: say("value.absolute") }, { key: "relative", text: say("value.relative") }]} />
      </div>
      <Answer asked={use("histogram", { scale: "symlog" }, v.histogram)} say={say}>
        {(value) => value.errors
          ? <ErrorCharts errors={value.errors} kind={kind} say={say} notes={value.notes} />
          : <><Notes notes={value.notes} /><p class="quiet">{say("value.no-pair")}</p></>}
      </Answer>
    </>
  );
}

function ErrorCharts({ errors, kind, say, notes }: { errors: v.Errors; kind: "absolute" | "relative"; say: Say; notes: readonly string[] }) {
  const { edges, counts } = errors[kind];
  const ulp = errors.ulp;
  const distance = (i: number): string => {
    const low = ulp?.edges[i] ?? i;
    const high = (ulp?.edges[i + 1] ?? low + 1) - 1;
    return low >= high ? formatNumber(low) : `${formatNumber(low)} … ${formatNumber(high)}`;
  };
  return (
    <>
      <Notes notes={notes} />
      <Facts caption={say("value.pairs")} head={[say("value.equal"), say("value.nonfinite"), say("value.nonfinite-mismatch"), say("value.relative-infinite")]}
        rows={[[errors.equal, errors.nonfinite, errors.nonfinite_mismatch, errors.relative_infinite].map(formatCount)]} />
      <div class="beside">
        {counts.length === 0 ? <p class="quiet">{say("value.no-difference")}</p>
          : <Bars title={say(`value.${kind}`)} up={counts} isLog say={say}
              mark={(i) => formatError(edges[i] ?? 0)} label={(i) => `${formatError(edges[i] ?? 0)} … ${formatError(edges[i + 1] ?? 0)}`} />}
        {ulp ? <Bars title={say("value.ulp")} up={ulp.counts} isLog say={say} mark={(i) => formatNumber(ulp.edges[i] ?? i)} label={distance} />
          : <p class="quiet">{say("value.no-ulp")}</p>}
      </div>
      <Facts caption={say("value.deciles")}
        head={[say("value.magnitude"), say("value.elements"), say("value.absolute-mean"), say("value.absolute-max"), say("value.relative-max")]}
        rows={errors.deciles.map((part) => [
          `${formatNumber(part.low)} … ${formatNumber(part.high)}`, formatCount(part.count), formatError(part.absolute_mean),
          formatError(part.absolute_max), formatError(part.relative_max)])} />
    </>
  );
}

const numbers = (text: string | undefined): number[] => (text ?? "").split(/[,:]/).filter((part) => part !== "").map(Number);

function SliceMap(props: SectionProps & { readonly shape: readonly number[] }) {
  const { say, state, context, keys, use, shape } = props;
  const { extra } = state;
  const wanted = Object.values(SIDE_KEYS).find((each) => each === extra["side"]);
  const change = (what: Readonly<Record<string, string>>): void => keep(context, state, what);
  keys.take = (event) => {
    const side = event.ctrlKey || event.shiftKey ? undefined : SIDE_KEYS[event.key.toLowerCase()];
    if (side) change({ side });
    return side !== undefined;
  };
  const asked = use("slice", {
    side: wanted ?? "", width: 256, height: 192, axes: extra["axes"] ?? "", fixed: extra["fixed"] ?? "", rows: extra["rows"] ?? "", columns: extra["columns"] ?? "",
  }, v.slice);
  const side = wanted ?? (asked.ok ? asked.value.side : "difference");
  const axisNames = shape.map((size, i) => ({ key: String(i), text: `${i} (${size})` }));
  const axes = numbers(extra["axes"]);
  const [down = Math.max(0, shape.length - 2), across = shape.length - 1] = axes;
  const rest = shape.flatMap((_, i) => (i === down || i === across ? [] : [i]));
  const fixed = rest.map((_, i) => numbers(extra["fixed"])[i] ?? 0);
  const choose = (a: number, b: number): void => change({ axes: `${a},${b}`, fixed: "", rows: "", columns: "" });
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.side")} value={side} choose={(key) => change({ side: key })} choices={[
          { key: "target", text: `${say("side.target")} (D)` }, { key: "golden", text: `${say("side.golden")} (B)` },
          { key: "difference", text: `${say("value.difference")} (X)` }]} />
        {shape.length > 2 && <>
          <Choose label={say("value.rows")} value={String(down)} choices={axisNames} choose={(key) => choose(Number(key), Number(key) === across ? down : across)} />
          <Choose label={say("value.columns")} value={String(across)} choices={axisNames} choose={(key) => choose(Number(key) === down ? across : down, Number(key))} />
        </>}
        <Choose label={say("value.colour-scale")} value={extra["colour"] ?? "symlog"} choose={(key) => change({ colour: key })}
          choices={[{ key: "symlog", text: say("scale.symlog") }, { key: "linear", text: say("scale.linear") }]} />
        {rest.map((axis, i) => (
          <Slider key={axis} label={say("value.axis", axis)} value={fixed[i] ?? 0} count={shape[axis] ?? 1}
            change={(at) => change({ fixed: fixed.map((old, j) => (j === i ? at : old)).join(",") })} />
        ))}
      </div>
      <Answer asked={asked} say={say}>
        {(value) => <SliceCells {...props} value={value} scale={extra["colour"] === "linear" ? "linear" : "symlog"}
          extent={[shape[down] ?? 1, shape[across] ?? 1]} zoom={(rows, columns) =>
            change({ rows: rows ? `${rows.from}:${rows.to}` : "", columns: columns ? `${columns.from}:${columns.to}` : "" })} />}
      </Answer>
    </>
  );
}

interface CellsProps {
  readonly say: Say;
  readonly value: v.Slice;
  readonly scale: ScaleKind;
  // Whole lengths of the two axes.
  readonly extent: readonly [number, number];
  zoom(rows: Range | null, columns: Range | null): void;
}

function SliceCells({ say, value, scale: kind, extent, zoom }: CellsProps) {
  // An element, wherever one zooms.
  const [at, setAt] = useState<Cell>({ row: 0, column: 0 });
  const { width, height, cells, side } = value;
  const [down, across] = value.axes.length === 2 ? value.axes : [-1, value.axes[0] ?? -1];
  const ramp = side === "difference" ? "diverging" : "sequential";
  const known = { low: value.min ?? 0, high: value.max ?? 0 };
  const range = side === "difference" ? symmetric(known) : known;
  const scale = scaleOf(kind, range.low, range.high);
  const rows: Range = { from: value.rows[0] ?? 0, to: value.rows[1] ?? height };
  const columns: Range = { from: value.columns[0] ?? 0, to: value.columns[1] ?? width };
  // The elements that a cell stands for.
  const part = (of: Range, i: number, parts: number): Range => ({
    from: of.from + Math.floor((i * (of.to - of.from)) / parts), to: of.from + Math.floor(((i + 1) * (of.to - of.from)) / parts),
  });
  const cellOf = (of: Range, element: number, parts: number): number =>
    Math.min(parts - 1, Math.max(0, Math.floor(((element - of.from + 1) * parts - 1) / (of.to - of.from))));
  const cursor = { row: cellOf(rows, at.row, height), column: cellOf(columns, at.column, width) };
  const name = ({ from, to }: Range): string => (to - from <= 1 ? String(from) : `${from} … ${to - 1}`);
  // Of all axes, as in a program.
  const index = (row: number, column: number): string => {
    const fixed = [...value.fixed];
    const form = value.golden ?? value.target;
    return (form?.shape ?? []).map((_, axis) => {
      if (axis === down) return name(part(rows, row, height));
      return axis === across ? name(part(columns, column, width)) : fixed.shift() ?? "";
    }).join(", ");
  };
  const cell = (row: number, column: number): number => cells[row]?.[column] ?? NaN;
  const around = (factor: number): void => zoom(
    zoomed(rows, at.row, factor, extent[0]), zoomed(columns, at.column, factor, extent[1]));
  const press = (event: KeyboardEvent): boolean => {
    if (event.key === "+" || event.key === "=") around(0.5);
    else if (event.key === "-") around(2);
    else if (event.key === "0") zoom(null, null);
    else return false;
    return true;
  };
  const pooling = value.is_exact ? say("value.exact") : say(`value.pooled.${value.pooling === "largest" ? "largest" : "mean"}`);
  return (
    <>
      <Notes notes={value.notes} />
      <HeatMap title={`${say(side === "difference" ? "value.difference" : `side.${side}`)} [${name(rows)}] × [${name(columns)}] — ${pooling}`} say={say}
        rows={height} columns={width} least={{ width: 1, height: 1 }} most={{ width: 120, height: 32 }} cursor={cursor}
        move={({ row, column }) => setAt({ row: part(rows, row, height).from, column: part(columns, column, width).from })}
        colour={(row, column) => numberColour(cell(row, column), scale, ramp)}
        text={(row, column) => (value.is_exact || Number.isNaN(cell(row, column)) ? formatNumber(cell(row, column)) : "")}
        brief={(row, column) => (value.is_exact ? formatShort(cell(row, column)) : "")}
        rowLabel={(row) => String(part(rows, row, height).from)} columnLabel={(column) => String(part(columns, column, width).from)}
        describe={(row, column) => `[${index(row, column)}] = ${formatNumber(cell(row, column))}`}
        open={() => around(0.5)} press={press}
        zoom={(down, across) => zoom(
          { from: part(rows, down.from, height).from, to: part(rows, down.to - 1, height).to },
          { from: part(columns, across.from, width).from, to: part(columns, across.to - 1, width).to })} />
      <Legend scale={scale} ramp={ramp} say={say} title={say("value.colour-scale")} />
      <p class="bar-of-fields">
        <button type="button" onClick={() => around(0.5)}>{say("key.zoom-in")} (+)</button>
        <button type="button" onClick={() => around(2)}>{say("key.zoom-out")} (−)</button>
        <button type="button" onClick={() => zoom(null, null)}>{say("value.whole")} (0)</button>
      </p>
    </>
  );
}

function Worst({ say, state, context, use, shape }: SectionProps & { readonly shape: readonly number[] }) {
  const by = state.extra["by"] === "relative" ? "relative" : "absolute";
  // The element with what lies around it.
  const show = (index: readonly number[]): void => {
    const near = (axis: number): string => {
      const at = index[axis];
      return at === undefined ? "" : `${Math.max(0, at - AROUND)}:${Math.min(shape[axis] ?? 0, at + AROUND + 1)}`;
    };
    const last = index.length - 1;
    keep(context, state, {
      show: "slice", axes: "", fixed: index.slice(0, -2).join(","), rows: near(last - 1), columns: near(last),
    });
  };
  const columns: readonly Column<v.WorstElement>[] = [
    { title: "#", width: "4em", isNumber: true, cell: (_, i) => i + 1 },
    { title: say("value.index"), width: "minmax(10em, 1fr)", cell: (row) => `[${row.index.join(", ")}]` },
    { title: say("side.target"), width: "9em", isNumber: true, cell: (row) => row.target },
    { title: say("side.golden"), width: "9em", isNumber: true, cell: (row) => row.golden },
    { title: say("value.difference"), width: "9em", isNumber: true, cell: (row) => formatNumber(row.difference) },
    { title: say("value.relative"), width: "8em", isNumber: true, cell: (row) => formatError(row.relative) },
  ];
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.order")} value={by} choose={(key) => keep(context, state, { by: key })}
          choices={[{ key: "absolute", text: say("value.absolute") }, { key: "relative", text: say("value.relative") }]} />
      </div>
      <Answer asked={use("topk", { k: 100, by }, v.worstElements)} say={say}>
        {({ worst, notes }) => (
          <><Notes notes={notes} />
            <p class="quiet">{say("value.worst-hint")}</p>
            <Table label={say("value.section.worst")} columns={columns} total={worst.length} row={(i) => worst[i]} open={({ index }) => show(index)} /></>
        )}
      </Answer>
    </>
  );
}

function Channels({ say, state, context, use, shape }: SectionProps & { readonly shape: readonly number[] }) {
  const axis = state.extra["axis"] ?? String(Math.max(0, shape.length - 1));
  const asked = use("profile", { axis }, v.profile);
  const value = asked.ok ? asked.value : null;
  const charts = useMemo(() => value && channelCharts(value, say), [value, say]);
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.channel-axis")} value={axis} choose={(key) => keep(context, state, { axis: key })}
          choices={shape.map((size, i) => ({ key: String(i), text: `${i} (${size})` }))} />
      </div>
      <Answer asked={asked} say={say}>
        {({ notes, begins }) => (
          <><Notes notes={notes} />
            {charts?.filter((chart) => chart.lines.length > 0).map((chart) => (
              <LineChart key={chart.title} title={chart.title} xLabel={say("value.axis", axis)} x={begins} lines={chart.lines} scale="linear" say={say} />
            ))}</>
        )}
      </Answer>
    </>
  );
}

function channelCharts(value: v.Profile, say: Say): { readonly title: string; readonly lines: readonly Line[] }[] {
  // Where no element is finite there is no number.
  const known = (values: readonly (number | null)[]) => values.map((each, i) => ((value.nonfinite[i] ?? 0) < (value.elements[i] ?? 0) ? each : null));
  const sides = (target: readonly (number | null)[], golden: readonly (number | null)[]): Line[] => [
    ...(value.target ? [{ label: say("side.target"), values: known(target), colour: "--target" }] : []),
    ...(value.golden ? [{ label: say("side.golden"), values: known(golden), colour: "--golden", isDashed: true }] : []),
  ];
  const error = { label: say("value.absolute-max"), values: known(value.absolute_max), colour: "--error" };
  return [
    { title: say("value.channel-error"), lines: value.target && value.golden ? [error] : [] },
    { title: say("details.column.mean"), lines: sides(value.target_mean, value.golden_mean) },
    { title: say("details.column.norm"), lines: sides(value.target_norm, value.golden_norm) },
  ];
}

// The value that a link names, else the worst of what was stored.
function chosenValue(details: NodeDetails, name: string): ValuePair | null {
  const weight = (value: ValuePair): number =>
    (value.target?.data_name || value.golden?.data_name ? 1e9 : 0) + (value.error === null ? 0 : Number.isFinite(value.error) ? value.error : 1e8);
  return details.values.find((value) => value.name === name) ??
    details.values.reduce<ValuePair | null>((worst, value) => (worst && weight(worst) >= weight(value) ? worst : value), null);
}

export function ValueView(props: ViewProps) {
  const { context, state } = props;
  const { say, session } = context;
  const { selected, details } = session;
  if (!session.meta.has_tensors) return <p class="quiet">{say("value.no-tensors")}</p>;
  if (!selected) return <p class="quiet">{say("value.no-node")}</p>;
  if (!details) return <p class="quiet" role="status">{say("app.loading")}</p>;
  return (
    <Answer asked={details} say={say}>
      {(known) => {
        const value = chosenValue(known, state.param);
        return value ? <OneValue {...props} details={known} value={value} node={selected.id} /> : <p class="quiet">{say("details.no-values")}</p>;
      }}
    </Answer>
  );
}

function OneValue(props: ViewProps & { readonly details: NodeDetails; readonly value: ValuePair; readonly node: number }) {
  const { context, state, details, value, node, keys } = props;
  const { say, session, api } = context;
  const section = SECTIONS.find((each) => each === state.extra["show"]) ?? "counts";
  const sectionProps: SectionProps = {
    context, state, keys, say,
    use: (what, parameters, answer) => useAsked(
      () => api.ask(`d/${encodeURIComponent(session.dataset)}/values`, {
        node, value: value.name, what, ...Object.fromEntries(Object.entries(parameters).filter(([, text]) => text !== "")),
      }, answer),
      [session.dataset, node, value.name, what, JSON.stringify(parameters)]),
  };
  const shape = (value.golden ?? value.target)?.shape ?? [];
  keys.take = (event) => {
    const side = SIDE_KEYS[event.key.toLowerCase()];
    if (!side || event.ctrlKey) return false;
    keep(context, state, { show: "slice", side });
    return true;
  };
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.value")} value={value.name} choose={(param) => context.go({ param, extra: { show: section } }, { replace: true })}
          choices={details.values.map((each) => ({
            key: each.name,
            text: `${SYMBOL[levelOfVerdict(each.verdict)]} ${each.name} ${formatShape((each.target ?? each.golden)?.shape ?? null)} ${formatError(each.error)}`,
          }))} />
        <bdi class="mono">{details.row.name}</bdi>
        {value.reason_text !== "" && <span>{value.reason_text}</span>}
      </div>
      <Tabs label={say("value.sections")} value={section} choose={(key) => keep(context, state, { show: key })}
        choices={SECTIONS.map((key) => ({ key, text: say(`value.section.${key}`) }))} />
      <div class="section" role="tabpanel" aria-label={say(`value.section.${section}`)} key={`${node} ${value.name} ${section}`}>
        {section === "counts" && <Counts {...sectionProps} />}
        {section === "errors" && <ErrorCounts {...sectionProps} />}
        {section === "slice" && <SliceMap {...sectionProps} shape={shape} />}
        {section === "worst" && <Worst {...sectionProps} shape={shape} />}
        {section === "channels" && <Channels {...sectionProps} shape={shape} />}
      </div>
    </>
  );
}
