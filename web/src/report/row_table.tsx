// All rows of a part that the page holds: filtered, sorted, drawn as far as they are in sight.
import { useMemo, useState } from "preact/hooks";
import { formatCount, formatError, formatScalar } from "../format";
import type { Say, TextKey } from "../texts";
import { VirtualRows } from "../virtual_rows";
import type { Part } from "./part";
import { bothOf, METRICS, ROLES, VERDICTS, type ValueRow } from "./value_rows";
import { RowDetail } from "./row_detail";
import { VerdictMark } from "./verdict_mark";

export interface RowTableProps {
  readonly say: Say;
  readonly part: Part;
  // In recorded order.
  readonly rows: readonly ValueRow[];
  readonly chosen: ValueRow | null;
  readonly onRow: (row: ValueRow) => void;
  readonly onOpen: (row: ValueRow) => void;
}

interface Column {
  readonly title: string;
  readonly width: string;
  readonly isNumber: boolean;
  readonly show: (row: ValueRow) => string;
  readonly order: (row: ValueRow) => string | number | null;
}

const HEIGHT = 26;

function columnsOf(say: Say, part: Part): readonly Column[] {
  const text = (key: TextKey, width: string, show: (row: ValueRow) => string): Column =>
    ({ title: say(key), width, isNumber: false, show, order: show });
  const metric = (title: string, i: number): Column => ({
    title, width: "104px", isNumber: part.data.header.mode !== "md5", show: (row) => formatScalar(row.metrics[i] ?? null),
    order: (row) => { const value = row.metrics[i] ?? null; return typeof value === "boolean" ? String(value) : value; },
  });
  return [
    { ...text("report.column.verdict", "132px", () => ""), order: (row) => row.verdict },
    { title: say("report.column.error"), width: "84px", isNumber: true, show: (row) => formatError(row.error), order: (row) => row.error },
    { ...text("report.column.call", `${nameWidth(part)}ch`, (row) => part.callName(row.call)), order: (row) => row.call },
    text("report.column.value", "150px", (row) => row.item),
    text("report.column.reason", "140px", (row) => row.reason),
    { title: say("report.column.explained"), width: "84px", isNumber: true, show: (row) => formatError(row.explained), order: (row) => row.explained },
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
  const template = columns.map(({ width }) => width).join(" ");
  // Numbers: the largest first, then the smallest, then the order of the calls.
  const turn = (column: number): void => {
    const isNumber = columns[column]?.isNumber ?? false;
    if (sort?.column !== column) setSort({ column, isDown: isNumber });
    else setSort(sort.isDown === isNumber ? { column, isDown: !isNumber } : null);
  };
  // Up and down among what is shown.
  const move = (event: KeyboardEvent): void => {
    const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (by === undefined || shown.length === 0) return;
    event.preventDefault();
    event.stopPropagation();
    const at = props.chosen ? shown.indexOf(props.chosen) + by : 0;
    const next = shown[Math.max(0, Math.min(shown.length - 1, at))];
    if (next) props.onRow(next);
  };
  const { rows: here, row_total: total } = part.end;
  return (
    <section class="report-section" id="report-rows">
      <h2>{say("report.rows")}</h2>
      <Filters say={say} filter={filter} onFilter={setFilter} />
      <div class="report-split">
        <div class="report-grid" tabIndex={0} role="group" aria-label={say("report.rows")} onKeyDown={move}>
          <div class="report-grid-inner">
            <div class="report-line head" style={{ gridTemplateColumns: template }}>
              {columns.map(({ title, isNumber }, i) => (
                <button key={i} class={isNumber ? "plain number" : "plain"} aria-pressed={sort?.column === i} onClick={() => turn(i)}>
                  {title}{sort?.column === i ? (sort.isDown ? " ▾" : " ▴") : ""}
                </button>
              ))}
            </div>
            <VirtualRows count={shown.length} height={HEIGHT} label={say("report.rows")} focus={props.chosen ? shown.indexOf(props.chosen) : -1}
              row={(i) => <Line {...props} row={shown[i]} columns={columns} template={template} />} />
          </div>
        </div>
        <RowDetail say={say} part={part} row={props.chosen} onOpen={props.onOpen} />
      </div>
      <p class="dim report-row-note">
        {say("report.rows-shown", formatCount(shown.length), formatCount(rows.length))}{" "}
        {here < total && `${say("report.rows-left-out", formatCount(total))} `}
        {say("report.rows-hint")}
      </p>
    </section>
  );
}

function Line(props: RowTableProps & { readonly row: ValueRow | undefined; readonly columns: readonly Column[]; readonly template: string }) {
  const { row, say } = props;
  if (!row) return null;
  return (
    <button class={row === props.chosen ? "report-line chosen" : "report-line"} style={{ gridTemplateColumns: props.template }} onClick={() => props.onRow(row)}>
      {props.columns.map((column, i) => (
        i === 0 ? <VerdictMark key={i} verdict={row.verdict} say={say} /> : <span key={i} class={column.isNumber ? "number" : "mono"} title={column.show(row)}><bdi>{column.show(row)}</bdi></span>
      ))}
    </button>
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
function sorted(rows: readonly ValueRow[], column: Column, isDown: boolean): readonly ValueRow[] {
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
