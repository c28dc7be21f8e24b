// What is known of the selected call: paired values, why they were judged as they were, the stack.
import { useState } from "preact/hooks";
import { cut, formatError, formatRecorded, formatScalar, formatShape } from "../format";
import { flagTexts, InsideMark, LevelMark, levelOfVerdict, severity, verdictText } from "../marks";
import type { State } from "../state";
import type { Say, TextKey } from "../texts";
import { StepSparks } from "../views/node_trend";
import { FLAG, type NodeDetails, type NodeRow, type Scalar, type ValuePair, type ValueSide } from "../types";
import type { Context } from "../view";

interface DetailsProps {
  readonly context: Context;
  readonly state: State;
}

const NAME_LENGTH = 200;

// A name of any length: cut, with the rest on demand.
function LongName(props: { readonly name: string; readonly say: Say }) {
  const [isWhole, setWhole] = useState(false);
  const { name, say } = props;
  if (name.length <= NAME_LENGTH || isWhole) return <bdi class="mono name">{name}</bdi>;
  return (
    <>
      <bdi class="mono name">{cut(name, NAME_LENGTH)}</bdi>{" "}
      <button class="plain" onClick={() => setWhole(true)}>{say("app.more", name.length)}</button>
    </>
  );
}

export function Details(props: DetailsProps) {
  const { say, session } = props.context;
  const row = session.selected;
  if (!row) return <section class="details"><p class="empty">{say("details.none")}</p></section>;
  const details = session.details;
  return (
    <section class="details" aria-label={say("details.title")} aria-busy={details === null}>
      <div class="details-side">
        <Identity {...props} row={row} details={details?.ok ? details.value : null} />
      </div>
      <div class="details-main">
        {details === null && <p class="empty">{say("app.loading")}</p>}
        {details?.ok === false && <p class="empty bad">{details.error.message}</p>}
        {details?.ok && <Values {...props} details={details.value} />}
      </div>
    </section>
  );
}

function Identity(props: DetailsProps & { readonly row: NodeRow; readonly details: NodeDetails | null }) {
  const { context, state, row, details } = props;
  const { say, session } = context;
  const partner = session.partner;
  const flags = flagTexts(row, say);
  const first = session.meta.first?.id === row.id ? session.meta.first : null;
  const overSteps = (state.param || details?.values.find((value) => value.role === "output")?.name) ?? undefined;
  return (
    <>
      <h2>
        <LevelMark level={row.level} say={say} withWord /> <InsideMark row={row} say={say} />
        <button class="plain end" onClick={() => context.copy(row.name)}>{say("app.copy")}</button>
      </h2>
      <p class="full-name"><LongName name={row.name || row.type} say={say} /></p>
      {details && details.path.length > 2 && (
        <p class="crumbs dim"><bdi>{details.path.slice(1, -1).map((name) => cut(lastParts(name), 40)).join(" › ")}</bdi></p>
      )}
      {first && first.what && <p class={`why ${row.level}`}><bdi>{first.what}</bdi></p>}
      {details && details.reason_text && !first && <p class={`why ${row.level}`}>{details.reason_text}</p>}
      {first && first.cause_text && <p class={`why ${row.level}`}>{say("answer.cause", first.cause, first.confidence, first.cause_text)}</p>}
      {flags.map((flag) => <p key={flag} class="flag">{flag}</p>)}
      {details && (
        <dl class="facts">
          <dt>{say("details.partner")}</dt>
          <dd>
            {partner
              ? <button class="plain mono" title={partner.name} onClick={() => context.select(partner)}><bdi>{cut(partner.name, 120)}</bdi></button>
              : session.meta.kind === "compare" ? say("details.no-partner") : "–"}
          </dd>
          {details.pairing && <><dt>{say("details.pairing")}</dt><dd>{details.pairing}</dd></>}
          {overSteps !== undefined && session.meta.steps.length > 1 && (
            <StepSparks api={session.api} dataset={session.dataset} node={row.id} value={overSteps} say={say} />
          )}
          {details.merge.length > 0 && <><dt>{say("details.merge")}</dt><dd>{details.merge.map((line) => <div key={line}>{line}</div>)}</dd></>}
        </dl>
      )}
      {details && <Stack context={context} frames={details.stack} title={say("details.stack")} />}
      {details && details.golden_stack.length > 0 && details.golden_stack.join() !== details.stack.join() && (
        <Stack context={context} frames={details.golden_stack} title={`${say("details.stack")} · ${say("side.golden")}`} />
      )}
    </>
  );
}

const lastParts = (name: string): string => name.split(".").slice(-4).join(".");

const FRAME = /^\s*File "?(.+?)"?, line (\d+)/;

function Stack(props: { readonly context: Context; readonly frames: readonly string[]; readonly title: string }) {
  const { context, frames } = props;
  const { say, api } = context;
  if (frames.length === 0) return <p class="dim">{say("details.no-stack")}</p>;
  return (
    <div class="stack">
      <h3>{props.title}<button class="plain end" onClick={() => context.copy(frames.join("\n"))}>{say("app.copy")}</button></h3>
      <ol>
        {frames.map((frame, i) => {
          const found = FRAME.exec(frame);
          return (
            <li key={i}>
              {found && api.isServed
                ? <button class="plain" onClick={() => context.source(found[1] ?? "", Number(found[2]))}><bdi>{frame.trim()}</bdi></button>
                : <bdi>{frame.trim()}</bdi>}
            </li>
          );
        })}
      </ol>
    </div>
  );
}

type Order = "order" | "name" | "verdict" | "error";
const NUMBERS = ["max", "min", "mean", "norm"] as const;
const COLUMNS: Readonly<Record<(typeof NUMBERS)[number], TextKey>> = {
  max: "details.column.max", min: "details.column.min", mean: "details.column.mean", norm: "details.column.norm",
};

function sorted(values: readonly ValuePair[], order: Order): readonly ValuePair[] {
  const known = (error: number | null): number => (error === null ? -1 : Number.isNaN(error) ? Infinity : error);
  switch (order) {
    case "name":
      return [...values].sort((a, b) => (a.name < b.name ? -1 : 1));
    case "verdict":
      return [...values].sort((a, b) => severity(levelOfVerdict(b.verdict)) - severity(levelOfVerdict(a.verdict)));
    case "error":
      return [...values].sort((a, b) => known(b.error) - known(a.error));
    default:
      return values;
  }
}

function Values(props: DetailsProps & { readonly details: NodeDetails }) {
  const { details } = props;
  const { say } = props.context;
  const [order, setOrder] = useState<Order>("order");
  if (details.values.length === 0) return <p class="empty">{say("details.no-values")}</p>;
  const values = sorted(details.values, order);
  const hasMd5 = values.some((value) => (value.target?.md5 ?? value.golden?.md5 ?? "") !== "");
  const hasLiteral = values.some(({ target, golden }) => [target, golden].some((side) => side && isLiteral(side)));
  const isCompared = values.some((value) => value.golden !== null);
  const head = (key: Order, text: TextKey, isNumber = false) => (
    <th class={isNumber ? "number" : ""} aria-sort={order === key ? "descending" : "none"}>
      <button class="plain" title={say("details.order", say(text))} onClick={() => setOrder(order === key ? "order" : key)}>
        {say(text)}{order === key ? " ▾" : ""}
      </button>
    </th>
  );
  return (
    <>
      <div class="table-tools">
        <h3>{say("view.value")}</h3>
        <button class="plain" onClick={() => props.context.copy(asText(values))}>{say("details.copy-table")}</button>
      </div>
      <table class="values">
        <thead>
          <tr>
            {head("name", "open.column.name")}
            {isCompared && head("verdict", "details.column.verdict")}
            {isCompared && head("error", "details.column.error", true)}
            <th>{say("details.column.side")}</th>
            <th>{say("details.column.dtype")}</th>
            {hasLiteral && <th>{say("value.value")}</th>}
            <th>{say("details.column.shape")}</th>
            {NUMBERS.map((name) => <th key={name} class="number">{say(COLUMNS[name])}</th>)}
            {hasMd5 && <th>{say("details.column.md5")}</th>}
          </tr>
        </thead>
        {values.map((value) => (
          <ValueRows key={value.name} {...props} value={value} isCompared={isCompared} hasMd5={hasMd5} hasLiteral={hasLiteral} />
        ))}
      </table>
    </>
  );
}

function ValueRows(props: DetailsProps & { readonly value: ValuePair; readonly isCompared: boolean; readonly hasMd5: boolean; readonly hasLiteral: boolean }) {
  const { context, state, value, isCompared } = props;
  const { say } = context;
  const level = levelOfVerdict(value.verdict);
  const rows = isCompared ? 2 : 1;
  const hints = [value.reason_text, ...value.notes].filter((text) => text !== "").join("\n");
  const metrics = Object.entries(value.metrics).filter(([, metric]) => metric !== null);
  return (
    <tbody class={value.name === state.param ? "chosen" : ""} onClick={() => context.go({ param: value.name })}
      onDblClick={() => context.go({ view: "value", param: value.name })}>
      <tr>
        <th scope="rowgroup" rowSpan={rows}>
          <button class="plain mono" title={say(`role.${value.role}`)} onClick={() => context.go({ param: value.name })}><bdi>{cut(value.name, 60)}</bdi></button>
        </th>
        {isCompared && (
          <td rowSpan={rows} title={hints}>
            <LevelMark level={level} say={say} /> {verdictText(value.verdict, say)}
            {value.reason_text && <div class="reason dim">{value.reason_text}</div>}
            {metrics.length > 0 && <Metrics metrics={metrics} say={say} />}
          </td>
        )}
        {isCompared && (
          <td class={`number ${level}`} rowSpan={rows} title={hints}>
            {formatError(value.error)}
            {value.explained !== null && <div class="dim small" title={say("details.column.explained")}>≤ {formatError(value.explained)}</div>}
          </td>
        )}
        <SideCells {...props} say={say} side={value.target} other={value.golden} label="side.target" level={level} />
      </tr>
      {isCompared && <tr class="golden"><SideCells {...props} say={say} side={value.golden} other={value.target} label="side.golden" level={level} /></tr>}
    </tbody>
  );
}

function Metrics(props: { readonly metrics: readonly (readonly [string, Scalar | null])[]; readonly say: Say }) {
  return (
    <details class="metrics" onClick={(event) => event.stopPropagation()}>
      <summary>{props.say("details.metrics")}</summary>
      <dl>{props.metrics.map(([name, metric]) => <><dt>{name}</dt><dd>{formatScalar(metric)}</dd></>)}</dl>
    </details>
  );
}

function SideCells(props: {
  readonly context: Context; readonly say: Say; readonly side: ValueSide | null; readonly other: ValueSide | null;
  readonly label: TextKey; readonly level: string; readonly hasMd5: boolean; readonly hasLiteral: boolean;
}) {
  const { context, side, other, say, hasMd5, hasLiteral } = props;
  const label = <td class="dim">{say(props.label)}</td>;
  const span = 2 + NUMBERS.length + (hasMd5 ? 1 : 0) + (hasLiteral ? 1 : 0);
  if (!side) return <>{label}<td class="dim" colSpan={span}>{say("details.missing")}</td></>;
  // Digits that differ within what rounding explains need no eyes.
  const isWrong = other !== null && (props.level === "error" || props.level === "warning");
  const differs = (a: string, b: string): string => (isWrong && a !== b ? `differs ${props.level}` : "");
  // Ranks that were merged hold parts, of other shapes than the whole.
  const isMerged = [context.session.selected, context.session.partner].some((row) => row && (row.flags & FLAG.merged) !== 0);
  const isOtherShape = other !== null && !isMerged && formatShape(side.shape) !== formatShape(other.shape);
  if (isLiteral(side)) {
    const shown = literal(side);
    const classes = `mono ${differs(shown, other && isLiteral(other) ? literal(other) : "")}`;
    return <>{label}<td>{side.type}</td><td class={classes} colSpan={span - 1}><bdi>{cut(shown, 300)}</bdi></td></>;
  }
  return (
    <>
      {label}
      <td class={`mono ${other && side.dtype !== other.dtype ? "differs warning" : ""}`}>{side.dtype.replace(/^torch\./, "")}</td>
      {hasLiteral && <td />}
      <td class={`mono ${isOtherShape ? "differs error" : ""}`}>{formatShape(side.shape)}</td>
      {NUMBERS.map((name) => (
        <td key={name} class={`number ${differs(text(side[name]), text(other?.[name] ?? null))}`} title={relative(side[name], other?.[name] ?? null, props)}>
          {formatScalar(side[name])}
        </td>
      ))}
      {hasMd5 && <td class={`mono ${differs(side.md5, other?.md5 ?? "")}`}>{side.md5}</td>}
    </>
  );
}

// NaN is not equal to itself, but two of them are the same picture.
const text = (value: Scalar | null): string => String(value);

// An argument that is no tensor: it has a value and no statistics.
function isLiteral(side: ValueSide): boolean {
  return (side.dtype === "" && side.shape === null) || (side.value !== null && NUMBERS.every((name) => side[name] === null));
}

const literal = ({ value, type }: ValueSide): string => formatRecorded(value, type);

function relative(own: Scalar | null, other: Scalar | null, props: { readonly say: Say; readonly label: TextKey }): string {
  if (typeof own !== "number" || typeof other !== "number" || props.label !== "side.target" || other === 0) return String(own ?? "");
  return `${own}\n${props.say("details.relative", `${(((own - other) / Math.abs(other)) * 100).toPrecision(3)} %`)}`;
}

// For spreadsheets: one line for each side of each value.
function asText(values: readonly ValuePair[]): string {
  const cell = (value: unknown): string => String(value ?? "").replace(/[\t\n]/g, " ");
  const line = (value: ValuePair, name: "target" | "golden"): string => {
    const side = value[name];
    return [value.name, name, value.verdict, value.error, side?.dtype, formatShape(side?.shape ?? null), side?.max, side?.min, side?.mean, side?.norm, side?.md5, side && isLiteral(side) ? literal(side) : ""].map(cell).join("\t");
  };
  const head = "value\tside\tverdict\terror\tdtype\tshape\tmax\tmin\tmean\tnorm\tmd5\targument";
  return [head, ...values.flatMap((value) => [line(value, "target"), ...(value.golden ? [line(value, "golden")] : [])])].join("\n");
}
