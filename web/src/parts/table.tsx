// Tables: one of any length, where arrow keys move and Enter opens, and a plain one.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { VirtualRows } from "../virtual_rows";
import { moveCursor } from "./grid";
import type { KeyHandler } from "./kit";

const ROW = 26;
const PAGE = 15;

export interface Column<T> {
  readonly title: string;
  // As in the grid of CSS: "8em", "1fr". A plain table has no need of it.
  readonly width?: string;
  readonly isNumber?: boolean;
  cell(row: T, i: number): ComponentChildren;
}

interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  // Below 0: not known yet.
  readonly total: number;
  // undefined: still asked for.
  row(i: number): T | undefined;
  // Rows that come into sight.
  readonly want?: (from: number, to: number) => void;
  // -1: none.
  readonly cursor?: number;
  // Of the view: its keys are the table's, wherever the focus is.
  readonly keys?: KeyHandler;
  readonly open?: (row: T, i: number) => void;
  readonly move?: (i: number) => void;
  readonly press?: (event: KeyboardEvent, row: T, i: number) => boolean;
  // Rows in sight at most; without, the table fills what room there is.
  readonly atMost?: number;
  readonly rowClass?: (row: T) => string;
  // What a row says in full where its cells are cut.
  readonly hint?: (row: T) => string;
  // What a click on a heading does, and which column the rows are sorted by.
  readonly sort?: (column: number) => void;
  readonly sorted?: { readonly column: number; readonly isDown: boolean } | null;
}

let tables = 0;

export function Table<T>(props: TableProps<T>) {
  const { columns, sort, sorted } = props;
  const total = Math.max(0, props.total);
  const [name] = useState(() => `table-${++tables}`);
  const [own, setOwn] = useState(0);
  const [isMoved, setIsMoved] = useState(false);
  const cursor = Math.min(props.cursor ?? own, total - 1);

  const place = (i: number): void => {
    setOwn(i);
    setIsMoved(true);
    props.move?.(i);
  };
  const take = (event: KeyboardEvent): boolean => {
    const row = props.row(cursor);
    const next = event.ctrlKey ? null : moveCursor(event.key, cursor, total, PAGE);
    if (next !== null) place(next);
    else if (event.key === "Enter" && row !== undefined && props.open) props.open(row, cursor);
    else return row !== undefined && props.press?.(event, row, cursor) === true;
    return true;
  };
  if (props.keys) props.keys.take = take;
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget || event.altKey || !take(event)) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const template = { gridTemplateColumns: columns.map((column) => column.width ?? "1fr").join(" ") };
  const cellClass = (column: Column<T>): string => (column.isNumber === true ? "cell number" : "cell");
  const line = (i: number): ComponentChildren => {
    const row = props.row(i);
    return (
      <div id={`${name}-${i}`} role="row" aria-rowindex={i + 2} aria-selected={i === cursor} title={row && props.hint?.(row)}
        class={`line ${row === undefined ? "" : props.rowClass?.(row) ?? ""}`} style={template}
        onClick={() => place(i)} onDblClick={() => row !== undefined && props.open?.(row, i)}>
        {row === undefined
          ? <div role="gridcell" class="cell">…</div>
          : columns.map((column, c) => <div key={c} role="gridcell" class={cellClass(column)}>{column.cell(row, i)}</div>)}
      </div>
    );
  };
  const heading = ({ title }: Column<T>, c: number): ComponentChildren => {
    const sign = sorted?.column === c ? (sorted.isDown ? " ▾" : " ▴") : "";
    return sort ? <button class="plain" onClick={() => sort(c)}>{title}{sign}</button> : title;
  };
  const head = (
    <div role="rowgroup" class="head-group">
      <div class="line head" role="row" style={template}>
        {columns.map((column, c) => <div key={c} role="columnheader" class={cellClass(column)}>{heading(column, c)}</div>)}
      </div>
    </div>
  );
  return (
    <div class="table" style={props.atMost === undefined ? {} : { height: `${(Math.min(props.atMost, Math.max(total, 1)) + 1) * ROW + 18}px` }}>
      <VirtualRows count={total} height={ROW} label={props.label} row={line}
        focus={isMoved || props.cursor !== undefined ? cursor : -1} onRange={(from, to) => props.want?.(from, Math.max(to, 1))}
        grid={{ head, headHeight: ROW, activeId: total > 0 && cursor >= 0 ? `${name}-${cursor}` : undefined, onKeyDown }} />
    </div>
  );
}

// A table that is all in the page. With `open` the first cell of a row is a button.
export function PlainTable<T>(props: {
  readonly columns: readonly Column<T>[]; readonly rows: readonly T[]; readonly class?: string; readonly caption?: string;
  readonly rowClass?: (row: T) => string; readonly open?: (row: T) => void;
}) {
  const { columns, rows, caption, open } = props;
  const cellClass = (column: Column<T>): string => (column.isNumber === true ? "number" : "");
  const cell = (row: T, i: number, column: Column<T>, c: number): ComponentChildren =>
    c === 0 && open ? <button class="plain" onClick={() => open(row)}>{column.cell(row, i)}</button> : column.cell(row, i);
  return (
    <table class={`plain-table ${props.class ?? ""}`}>
      {caption !== undefined && <caption>{caption}</caption>}
      {columns.some(({ title }) => title !== "") && (
        <thead><tr>{columns.map((column, c) => (column.title === "" ? <td key={c} /> : <th key={c} scope="col" class={cellClass(column)}>{column.title}</th>))}</tr></thead>
      )}
      <tbody>
        {rows.map((row, i) => (
          <tr key={i} class={`${props.rowClass?.(row) ?? ""} ${open ? "link" : ""}`} onClick={() => open?.(row)}>
            {columns.map((column, c) => <td key={c} class={cellClass(column)}>{cell(row, i, column, c)}</td>)}
          </tr>
        ))}
      </tbody>
    </table>
  );
}
