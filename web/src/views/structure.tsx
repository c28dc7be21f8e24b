// The calls of both recordings side by side with gaps where one is missing; suggested pairs can be
// accepted, undone, and written as a mapping file.
import { useMemo, useState } from "preact/hooks";
import { formatCount } from "../format";
import { LevelMark } from "../marks";
import { Check, keep, Trouble, useAsked, useRedraw, type ViewProps } from "../parts/kit";
import { Pages } from "../parts/pages";
import { Table, type Column } from "../parts/table";
import type { Failure, Result } from "../result";
import type { Say } from "../texts";
import type { Mapping, Matches, NodeRow, StructureRow } from "../types";
import { Dialog } from "../panels/dialogs";
import { save } from "../panels/export";

const PAGE = 200;
// Suggestions that are looked for when all are accepted.
const ALL_ROWS = 1000;

function pairOf({ target, golden, suggestion }: StructureRow): readonly [string, string] | null {
  if (!suggestion) return null;
  if (target) return [target.name, suggestion.name];
  return golden ? [suggestion.name, golden.name] : null;
}

const backwardOf = (name: string): string => name.replace(/\.forward(?=\.|$)/, ".backward");

// A node is suggested to several others at times: the one it fits best gets it. The program pairs the
// backward of a call with it.
export function distinctPairs(rows: Iterable<StructureRow>, known: Matches["pairs"] = []): (readonly [string, string])[] {
  const used = [new Set(known.map(([target]) => target)), new Set(known.map(([, golden]) => golden))] as const;
  const out: (readonly [string, string])[] = [];
  const weight = ({ suggestion }: StructureRow): number =>
    (suggestion?.score ?? 0) + (suggestion && backwardOf(suggestion.name) !== suggestion.name ? 1 : 0);
  const best = [...rows].sort((a, b) => weight(b) - weight(a));
  for (const row of best) {
    const pair = pairOf(row);
    if (!pair || used[0].has(pair[0]) || used[1].has(pair[1])) continue;
    for (const i of [0, 1] as const) used[i].add(pair[i]).add(backwardOf(pair[i]));
    out.push(pair);
  }
  return out;
}

export function StructureView({ context, state }: ViewProps) {
  const { say, session, api } = context;
  const { dataset, place } = session;
  const isAll = state.extra["list"] === "all";
  const redraw = useRedraw();
  const [cursor, setCursor] = useState(0);
  const [fault, setFault] = useState<Failure | null>(null);
  const [mapping, setMapping] = useState<Mapping | null>(null);
  const only = isAll ? undefined : "differences";
  const pages = useMemo(
    () => new Pages<StructureRow>((offset, limit) => api.structure(dataset, { place, offset, limit, only }), PAGE, redraw),
    [dataset, place, isAll, session.matched, session.meta.etag]);
  const asked = useAsked(() => api.matches(dataset), [dataset, session.matched, session.meta.etag]);
  const matches = asked.ok ? asked.value : null;

  const take = (got: Result<Matches>, said: string): void => {
    setFault(got.ok ? null : got.error);
    if (!got.ok) return;
    session.matched++;
    context.notice(said);
  };
  const accept = async (pairs: readonly (readonly [string, string])[], with_children: boolean): Promise<void> => {
    if (pairs.length === 0) context.notice(say("structure.nothing"));
    else take(await api.match(dataset, { pairs, place, with_children }), say("structure.accepted", pairs.length));
  };
  const acceptRow = (row: StructureRow): void => void accept(distinctPairs([row], matches?.pairs), true);
  const acceptAll = async (): Promise<void> => {
    const all: StructureRow[] = [];
    for (let total = 1; all.length < total;) {
      const answer = await api.structure(dataset, { place, offset: all.length, limit: ALL_ROWS, only: "differences" });
      if (!answer.ok) return setFault(answer.error);
      if (answer.value.rows.length === 0) break;
      all.push(...answer.value.rows);
      total = answer.value.total;
    }
    // What lies below a call has a suggestion of its own.
    await accept(distinctPairs(all, matches?.pairs), false);
  };
  const undo = async (): Promise<void> => take(await api.undo(dataset), say("structure.undone"));
  const propose = async (): Promise<void> => {
    const got = await api.mapping(dataset);
    setFault(got.ok ? null : got.error);
    if (got.ok) setMapping(got.value);
  };

  const trouble = fault ?? pages.failure ?? (asked.ok === false ? asked.error : null);

  // Also until the result is made anew with it.
  const byHand = ({ target, golden }: StructureRow): string | undefined =>
    matches?.pairs.find((pair) => pair[0] === target?.name)?.[1] ?? matches?.pairs.find((pair) => pair[1] === golden?.name)?.[0];
  const name = (row: NodeRow | null, depth: number) => row
    ? <span class="indented" style={{ "--depth": depth }}><LevelMark level={row.level} say={say} /> <bdi class="mono">{row.name}</bdi></span>
    : <span class="gap">{say("structure.gap")}</span>;
  const columns: readonly Column<StructureRow>[] = [
    { title: say("side.target"), width: "minmax(14em, 1fr)", cell: (row) => name(row.target, row.depth) },
    { title: say("side.golden"), width: "minmax(14em, 1fr)", cell: (row) => name(row.golden, row.depth) },
    {
      title: say("structure.suggestion"), width: "minmax(18em, 1.2fr)",
      cell: (row) => byHand(row) !== undefined ? <>✓ {say("flag.byHand")}: <bdi class="mono">{byHand(row)}</bdi></> : row.suggestion && (
        <>
          <button type="button" class="small-button" tabIndex={-1} onClick={() => acceptRow(row)}>{say("structure.accept")}</button>{" "}
          <b>{Math.round(row.suggestion.score * 100)} %</b> <bdi class="mono">{row.suggestion.name}</bdi> <span class="quiet">{row.suggestion.why}</span>
        </>
      ),
    },
  ];
  return (
    <>
      <div class="bar-of-fields">
        <Check label={say("structure.only")} checked={!isAll} change={(on) => keep(context, state, { list: on ? "" : "all" })} />
        <button type="button" onClick={() => void acceptAll()} disabled={!api.isServed}>{say("structure.accept-all")} (Shift+A)</button>
        <button type="button" onClick={() => void undo()} disabled={matches?.can_undo !== true}>{say("structure.undo")} (Ctrl+Z)</button>
        <button type="button" onClick={() => void propose()}>{say("structure.mapping")}</button>
        <span class="quiet">{say("structure.by-hand", formatCount(matches?.pairs.length ?? 0))}</span>
      </div>
      {trouble && <Trouble error={trouble} say={say} />}
      {pages.total === 0 && <p class="quiet">✓ {say(isAll ? "tree.empty" : "structure.same")}</p>}
      <Table label={say("view.structure")} columns={columns} total={pages.total} row={(i) => pages.row(i)} want={(from, to) => pages.want(from, to)}
        cursor={cursor} move={(i) => {
          setCursor(i);
          const row = pages.row(i);
          const node = row?.target ?? row?.golden;
          if (node) context.select(node);
        }} rowClass={(row) => (row.target && row.golden ? "" : "one-sided")}
        open={(row) => {
          const node = row.target ?? row.golden;
          if (node) context.select(node, "graph");
        }}
        press={(event, row) => {
          if (event.ctrlKey && event.key === "z") void undo();
          else if (event.ctrlKey) return false;
          else if (event.key === "A") void acceptAll();
          else if (event.key === "a") acceptRow(row);
          else return false;
          return true;
        }} />
      <p class="quiet">{say("structure.keys")}</p>
      {mapping && <MappingDialog mapping={mapping} say={say} close={() => setMapping(null)} />}
    </>
  );
}

function MappingDialog({ mapping, say, close }: { mapping: Mapping; say: Say; close: () => void }) {
  return (
    <Dialog title={say("mapping.title")} say={say} onClose={close}>
      <p>{say("mapping.counts", formatCount(mapping.matched), formatCount(mapping.unmatched))}</p>
      <p class="bar-of-fields">
        <button type="button" autofocus onClick={() => save("mapping.yaml", new Blob([mapping.yaml], { type: "text/plain" }))}>{say("mapping.save")}</button>
        <button type="button" onClick={() => void navigator.clipboard?.writeText(mapping.yaml)}>{say("app.copy")}</button>
      </p>
      <pre class="mapping" tabIndex={0}>{mapping.yaml}</pre>
    </Dialog>
  );
}
