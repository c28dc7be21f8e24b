// How errors grow through a module: its children in order of execution, each with the error of its
// inputs and of its outputs as two bars on a logarithmic scale.
import { useEffect, useRef } from "preact/hooks";
import { formatError, shortName } from "../format";
import { useAsked } from "../parts/kit";
import { FLAG, type NodeRow } from "../types";
import type { Context } from "../view";

// Below this an error is drawn as none; the height of a bar counts the decades above it.
const LOWEST = 1e-9;
const DECADES = 9;
const SHOWN = 400;

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
  const answer = useAsked(() => (node < 0 ? null : session.api.flow(session.dataset, node)), [node, session]);
  if (answer.ok === null) return <section class="flow"><p class="empty">{say("flow.none")}</p></section>;
  if (!answer.ok) return <section class="flow"><p class="empty bad">{answer.error.message}</p></section>;
  const rows = answer.value.slice(0, SHOWN);
  const jump = largestJump(rows);
  return (
    <section class="flow" aria-label={say("flow.title")}>
      <h2 title={say("flow.hint")}>{say("flow.title")}</h2>
      <div class="flow-keys" aria-hidden="true"><i class="in" />{say("role.input")}<i class="out" />{say("role.output")}</div>
      <ol class="flow-bars">
        {rows.map((row, i) => (
          <li key={row.id}>
            <FlowBar context={context} row={row} isJump={i === jump} isChosen={row.id === selected?.id} />
          </li>
        ))}
      </ol>
    </section>
  );
}

function FlowBar(props: { readonly context: Context; readonly row: NodeRow; readonly isJump: boolean; readonly isChosen: boolean }) {
  const { row, context } = props;
  const { say } = context;
  const element = useRef<HTMLButtonElement>(null);
  useEffect(() => {
    if (props.isChosen) element.current?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }, [props.isChosen]);
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
