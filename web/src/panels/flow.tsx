// How errors grow through a module: its children in order of execution, each with the error of its
// inputs and of its outputs as two bars on a logarithmic scale.
import { useEffect, useRef } from "preact/hooks";
import { formatCount, formatError, shortName } from "../format";
import { useAsked } from "../parts/kit";
import { FLAG, type NodeRow } from "../types";
import type { Context } from "../view";

// Below this an error is drawn as none; the height of a bar counts the decades above it.
const LOWEST = 1e-9;
const DECADES = 9;
// Children that are asked for at once; the part moves by half of it.
const SHOWN = 400;

// Where the part begins that shows the child at a position with others on both sides; -1: the beginning.
export const flowFrom = (index: number): number => Math.max(0, (Math.floor((2 * index) / SHOWN) - 0.5) * (SHOWN / 2));

export function barHeight(error: number | null): number {
  if (error === null) return 0;
  if (Number.isNaN(error) || error >= 1) return 1;
  if (error <= LOWEST) return 0;
  return Math.max(0.03, 1 + Math.log10(error) / DECADES);
}

// Where the error is made: at the first wrong call, whose own argument may be what is wrong; else at the
// largest rise from the inputs of a call to its outputs, in decades.
export function largestJump(rows: readonly NodeRow[]): number {
  const first = rows.findIndex((row) => (row.flags & FLAG.first) !== 0);
  if (first >= 0) return first;
  let at = -1;
  let largest = 0.12;
  rows.forEach((row, i) => {
    const jump = barHeight(row.error) - barHeight(row.input_error);
    if (jump > largest) {
      largest = jump;
      at = i;
    }
  });
  return at;
}

export function Flow({ context }: { readonly context: Context }) {
  const { say, session } = context;
  const selected = session.selected;
  const node = selected === null ? -1 : selected.children > 0 ? selected.id : selected.parent;
  // Of a module: what leads to the first wrong call.
  const shown = (selected?.id === node ? session.meta.first?.id : selected?.id) ?? -1;
  const known = session.tree(session.side)?.node(shown);
  const path = useAsked(() => (shown < 0 || known?.parent === node ? null : session.api.path(session.dataset, shown)), [shown, known?.parent === node, session]);
  const child = known?.parent === node ? known : path.ok ? path.value.rows.find(({ parent }) => parent === node) : undefined;
  const from = flowFrom(child?.index ?? -1);
  const answer = useAsked(() => (node < 0 ? null : session.api.flow(session.dataset, node, from, SHOWN)), [node, from, session]);
  if (answer.ok === null) return <section class="flow"><p class="empty">{say("flow.none")}</p></section>;
  if (!answer.ok) return <section class="flow"><p class="empty bad">{answer.error.message}</p></section>;
  const { rows, total } = answer.value;
  const jump = largestJump(rows);
  const chosen = rows.findIndex(({ id }) => id === selected?.id);
  return (
    <section class="flow" aria-label={say("flow.title")}>
      <h2 title={say("flow.hint")}>{say("flow.title")}</h2>
      <div class="flow-keys" aria-hidden="true"><i class="in" />{say("role.input")}<i class="out" />{say("role.output")}</div>
      {total > rows.length && <span class="flow-part dim small">{say("hits.count", `${formatCount(from + 1)} – ${formatCount(from + rows.length)}`, formatCount(total))}</span>}
      <ol class="flow-bars">
        {rows.map((row, i) => (
          <li key={row.id}>
            <FlowBar context={context} row={row} from={from} isJump={i === jump} isChosen={i === chosen} isSought={i === (chosen < 0 ? jump : chosen)} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function FlowBar(props: { readonly context: Context; readonly row: NodeRow; readonly from: number; readonly isJump: boolean; readonly isChosen: boolean; readonly isSought: boolean }) {
  const { row, context } = props;
  const { say } = context;
  const element = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (props.isSought) element.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [props.isSought, props.from]);
  const said = `${row.name}\n${say("role.input")} ${formatError(row.input_error) || "–"}, ${say("role.output")} ${formatError(row.error) || "–"}`;
  const classes = ["flow-bar", row.level, props.isJump ? "jump" : "", props.isChosen ? "chosen" : ""].join(" ");
  return (
    <button ref={element} class={classes} title={said} aria-label={said} onClick={() => context.select(row)}>
      <span class="columns">
        <i class="in" style={{ height: `${barHeight(row.input_error) * 100}%` }} />
        <i class="out" style={{ height: `${barHeight(row.error) * 100}%` }} />
      </span>
      <bdi>{shortName(row.name, row.type)}</bdi>
    </button>
  );
}
