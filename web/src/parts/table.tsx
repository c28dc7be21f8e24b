// A table of any length. Arrow keys move, Enter opens.
import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { VirtualRows } from "../virtual_rows";
import { moveCursor } from "./grid";

const ROW = 26;
const PAGE = 15;

export interface Column<T> {
  readonly title: string;
  // As in the grid of CSS: "8em", "1fr".
  readonly width: string;
  readonly isNumber?: boolean;
  cell(row: T, i: number): ComponentChildren;
}

export interface TableProps<T> {
  readonly label: string;
  readonly columns: readonly Column<T>[];
  // Below 0: not known yet.
  readonly total: number;
  // undefined: still asked for.
  row(i: number): T | undefined;
  // Rows that come into sight.
  readonly want?: (from: number, to: number) => void;
  readonly cursor?: number;
  readonly open?: (row: T, i: number) => void;
  readonly move?: (i: number) => void;
  readonly press?: (event: KeyboardEvent, row: T, i: number) => boolean;
  // Rows in sight at most; without, the table fills what room there is.
  readonly atMost?: number;
  readonly rowClass?: (row: T) => string;
}

let tables = 0;

export function Table<T>(props: TableProps<T>) {
  const { columns } = props;
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
  const onKeyDown = (event: KeyboardEvent): void => {
    if (event.target !== event.currentTarget || event.altKey) return;
    const row = props.row(cursor);
    const next = event.ctrlKey ? null : moveCursor(event.key, cursor, total, PAGE);
    if (next !== null) place(next);
    else if (event.key === "Enter" && row !== undefined && props.open) props.open(row, cursor);
    else if (row === undefined || props.press?.(event, row, cursor) !== true) return;
    event.preventDefault();
    event.stopPropagation();
  };

  const template = { gridTemplateColumns: columns.map((column) => column.width).join(" ") };
  const cellClass = (column: Column<T>): string => (column.isNumber === true ? "cell number" : "cell");
  const line = (i: number): ComponentChildren => {
    const row = props.row(i);
    return (
      <div id={`${name}-${i}`} role="row" aria-rowindex={i + 2} aria-selected={i === cursor}
        class={`line ${row === undefined ? "" : props.rowClass?.(row) ?? ""}`} style={template}
        onClick={() => place(i)} onDblClick={() => row !== undefined && props.open?.(row, i)}>
        {row === undefined
          ? <div role="gridcell" class="cell">…</div>
          : columns.map((column, c) => <div key={c} role="gridcell" class={cellClass(column)}>{column.cell(row, i)}</div>)}
      </div>
    );
  };
  const head = (
    <div role="rowgroup" class="head-group">
      <div class="line head" role="row" style={template}>
        {columns.map((column, c) => <div key={c} role="columnheader" class={cellClass(column)}>{column.title}</div>)}
      </div>
    </div>
  );
  return (
    <div class="table" style={props.atMost === undefined ? {} : { height: `${(Math.min(props.atMost, Math.max(total, 1)) + 1) * ROW + 18}px` }}>
      <VirtualRows count={total} height={ROW} label={props.label} row={line}
        focus={isMoved ? cursor : -1} onRange={(from, to) => props.want?.(from, Math.max(to, 1))}
        grid={{ head, headHeight: ROW, activeId: total > 0 ? `${name}-${cursor}` : undefined, onKeyDown }} />
    </div>
  );
}
