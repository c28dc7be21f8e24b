// All rows of a part that the page holds, filtered and sorted, and what is known of the chosen one.
import { useMemo, useState } from "preact/hooks";
import { formatCount, formatError, formatScalar } from "../format";
import { VERDICTS } from "../marks";
import { PlainTable, Table, type Column } from "../parts/table";
import type { Scalar } from "../types";
import type { Say, TextKey } from "../texts";
import { StackList } from "./evidence_card";
import type { Part } from "./part";
import { bothOf, isTensor, METRICS, pairOf, ROLES, STATISTICS, type ValueRow } from "./value_rows";
import { VerdictMark } from "./verdict_mark";

interface RowTableProps {
  readonly say: Say;
  readonly part: Part;
  // In recorded order.
  readonly rows: readonly ValueRow[];
  readonly chosen: ValueRow | null;
  readonly onRow: (row: ValueRow) => void;
  readonly onOpen: (row: ValueRow) => void;
}

interface SortedColumn extends Column<ValueRow> {
  readonly order: (row: ValueRow) => string | number | null;
}

function columnsOf(say: Say, part: Part): readonly SortedColumn[] {
  const text = (key: TextKey, width: string, show: (row: ValueRow) => string): SortedColumn =>
    ({ title: say(key), width, cell: (row) => <bdi class="mono" title={show(row)}>{show(row)}</bdi>, order: show });
  const number = (key: TextKey, of: (row: ValueRow) => number | null): SortedColumn =>
    ({ title: say(key), width: "84px", isNumber: true, cell: (row) => formatError(of(row)), order: of });
  const metric = (title: string, i: number): SortedColumn => ({
    title, width: "104px", isNumber: part.data.header.mode !== "md5", cell: (row) => formatScalar(row.metrics[i] ?? null),
    order: (row) => { const value = row.metrics[i] ?? null; return typeof value === "boolean" ? String(value) : value; },
  });
  return [
    { title: say("report.column.verdict"), width: "132px", cell: ({ verdict }) => <VerdictMark verdict={verdict} say={say} />, order: (row) => row.verdict },
    number("report.column.error", (row) => row.error),
    { ...text("report.column.call", `${nameWidth(part)}ch`, (row) => part.callName(row.call)), order: (row) => row.call },
    text("report.column.value", "150px", (row) => row.item),
    text("report.column.reason", "140px", (row) => row.reason),
    number("report.column.explained", (row) => row.explained),
    text("report.column.dtype", "130px", (row) => bothOf(row.dtypes)),
    text("report.column.shape", "130px", (row) => bothOf(row.shapes)),
    text("report.column.result", "120px", (row) => row.result),
    ...METRICS[part.data.header.mode].map(metric),
  ];
}

// Names are shown whole, as long as they are sensible.
function nameWidth(part: Part): number {
  let longest = 12;
  for (let call = 0; call < part.callCount; call++) longest = Math.max(longest, part.callName(call).length);
  return Math.min(longest, 200) + 3;
}

interface Filter {
  readonly words: string;
  readonly role: number;
  readonly verdicts: readonly boolean[];
}
const NO_FILTER: Filter = { words: "", role: -1, verdicts: VERDICTS.map(() => true) };

export function RowTable(props: RowTableProps) {
  const { say, part, rows } = props;
  const [filter, setFilter] = useState(NO_FILTER);
  const [sort, setSort] = useState<{ readonly column: number; readonly isDown: boolean } | null>(null);
  const columns = useMemo(() => columnsOf(say, part), [say, part]);
  const shown = useMemo(() => {
    const found = filtered(rows, part, filter);
    const column = sort && columns[sort.column];
    return column ? sorted(found, column, sort.isDown) : found;
  }, [rows, part, filter, sort, columns]);
  // Numbers: the largest first, then the smallest, then the order of the calls.
  const turn = (column: number): void => {
    const isNumber = columns[column]?.isNumber ?? false;
    if (sort?.column !== column) setSort({ column, isDown: isNumber });
    else setSort(sort.isDown === isNumber ? { column, isDown: !isNumber } : null);
  };
  const choose = (i: number): void => {
    if (shown[i]) props.onRow(shown[i]);
  };
  const { rows: here, row_total: total } = part.end;
  return (
    <section class="report-section" id="report-rows">
      <h2>{say("report.rows")}</h2>
      <Filters say={say} filter={filter} onFilter={setFilter} />
      <div class="report-split">
        <Table label={say("report.rows")} columns={columns} total={shown.length} row={(i) => shown[i]} sort={turn} sorted={sort}
          cursor={props.chosen ? shown.indexOf(props.chosen) : -1} move={choose} open={props.onOpen} />
        <RowDetail {...props} />
      </div>
      <p class="dim">
        {say("report.rows-shown", formatCount(shown.length), formatCount(rows.length))}{" "}
        {here < total && `${say("report.rows-left-out", formatCount(total))} `}
        {say("report.rows-hint")}
      </p>
    </section>
  );
}

function Filters(props: { readonly say: Say; readonly filter: Filter; readonly onFilter: (filter: Filter) => void }) {
  const { say, filter, onFilter } = props;
  return (
    <div class="report-filters" role="search">
      <input type="search" placeholder={say("report.filter")} aria-label={say("report.filter")} value={filter.words}
        onInput={(event) => onFilter({ ...filter, words: event.currentTarget.value })} />
      <select aria-label={say("report.every-role")} value={filter.role} onChange={(event) => onFilter({ ...filter, role: Number(event.currentTarget.value) })}>
        <option value={-1}>{say("report.every-role")}</option>
        {ROLES.map((role, i) => <option key={role} value={i}>{say(`role.${role}`)}</option>)}
      </select>
      {VERDICTS.map((name, i) => (
        <label key={name}>
          <input type="checkbox" checked={filter.verdicts[i]} onChange={() => onFilter({ ...filter, verdicts: filter.verdicts.map((on, k) => (k === i ? !on : on)) })} />
          <VerdictMark verdict={i} say={say} />
        </label>
      ))}
    </div>
  );
}

export function filtered(rows: readonly ValueRow[], part: Part, filter: Filter): readonly ValueRow[] {
  const words = filter.words.toLowerCase().split(/\s+/).filter((word) => word !== "");
  return rows.filter((row) => {
    if (filter.verdicts[row.verdict] === false || (filter.role >= 0 && row.role !== filter.role)) return false;
    if (words.length === 0) return true;
    const text = `${part.callName(row.call)}.${row.item} ${row.reason} ${bothOf(row.dtypes)} ${bothOf(row.shapes)}`.toLowerCase();
    return words.every((word) => text.includes(word));
  });
}

// What is no number goes last, whichever way the table is sorted.
function sorted(rows: readonly ValueRow[], column: SortedColumn, isDown: boolean): readonly ValueRow[] {
  const sign = isDown ? -1 : 1;
  const isLast = (key: string | number | null): boolean => key === null || Number.isNaN(key);
  const keyed = rows.map((row) => ({ row, key: column.order(row) }));
  keyed.sort((one, other) => {
    const a = one.key, b = other.key;
    if (isLast(a) || isLast(b)) return Number(isLast(a)) - Number(isLast(b));
    if (typeof a === "number" && typeof b === "number") return sign * (a - b);
    return sign * (String(a) < String(b) ? -1 : String(a) > String(b) ? 1 : 0);
  });
  return keyed.map(({ row }) => row);
}

// Both sides, how far they differ, remarks, the stack of the call.
function RowDetail({ say, part, chosen: row, onOpen }: RowTableProps) {
  if (!row) return <aside class="report-detail"><p class="empty">{say("report.no-row")}</p></aside>;
  const { mode } = part.data.header;
  const unmatched = part.unmatchedText(row.call);
  const stack = part.stackOf(row.call);
  const words = part.reasonText(row.reason);
  const facts = Object.entries<Scalar | null>({ error: row.error, explained: row.explained, ...pairOf(row, mode, part.data.reasons).metrics });
  const [target, golden] = row.statistics;
  const names: readonly string[] = (target ?? golden ?? []).length > 1 ? STATISTICS : ["value"];
  const number = (side: typeof target, i: number) => (side && isTensor(side) === names.length > 1 ? <bdi>{formatScalar(side[i] ?? null)}</bdi> : "");
  const sides: readonly Column<string>[] = [
    { title: "", cell: (name) => name },
    { title: say("side.target"), isNumber: true, cell: (_, i) => number(target, i) },
    { title: say("side.golden"), isNumber: true, cell: (_, i) => number(golden, i) },
  ];
  return (
    <aside class="report-detail" aria-live="polite">
      <h3 class="mono"><bdi>{`${part.callName(row.call)}.${row.item}`}</bdi></h3>
      <p><VerdictMark verdict={row.verdict} say={say} /> <span class="dim">{words === row.reason ? words : `${row.reason}: ${words}`}</span></p>
      <p class="mono">{bothOf(row.dtypes)} {bothOf(row.shapes)}</p>
      {unmatched !== "" && <p>{say("report.no-counterpart", part.reasonText(unmatched))}</p>}
      {mode !== "md5" && <PlainTable class="sides" columns={sides} rows={names} />}
      {target !== null && golden !== null && (
        <PlainTable rows={facts.filter(([, value]) => value !== null)}
          columns={[{ title: "", cell: ([name]) => name }, { title: "", isNumber: true, cell: ([, value]) => formatScalar(value) }]} />
      )}
      {row.notes.map(([code, note]) => <p key={code} class="dim"><bdi>[{code}] {note}</bdi></p>)}
      <p><button onClick={() => onOpen(row)}>{say("report.open-graph")}</button></p>
      {stack.length > 0 && <><h3>{say("details.stack")}</h3><StackList say={say} frames={stack} foreign={part.foreignOf(row.call)} /></>}
    </aside>
  );
}
