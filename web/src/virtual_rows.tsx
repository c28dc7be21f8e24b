// Rows of equal height of which only those in sight are in the document. Above the height that
// browsers can lay out, the scroll bar stands for more rows than it has pixels.
import type { ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";

// A table with keys of its own: its headings stay at the top of the rows.
interface GridProps {
  readonly head: ComponentChildren;
  readonly headHeight: number;
  readonly activeId: string | undefined;
  readonly onKeyDown: (event: KeyboardEvent) => void;
}

interface VirtualRowsProps {
  readonly count: number;
  readonly height: number;
  readonly label: string;
  readonly role?: "group" | "tree" | "list";
  readonly row: (index: number) => ComponentChildren;
  // Which rows are in sight, whenever that changes.
  readonly onRange?: (from: number, to: number) => void;
  // Brought into sight whenever it changes; -1: none.
  readonly focus?: number;
  readonly grid?: GridProps;
}

const MAX_HEIGHT = 8_000_000;
const EXTRA_ROWS = 6;

export function VirtualRows(props: VirtualRowsProps) {
  const { count, height, focus = -1, grid } = props;
  const box = useRef<HTMLDivElement>(null);
  const [view, setView] = useState({ top: 0, size: 400 });
  const whole = count * height;
  const shown = Math.min(whole, MAX_HEIGHT);
  const scale = shown > view.size && whole > shown ? (whole - view.size) / (shown - view.size) : 1;
  const from = Math.max(0, Math.floor((view.top * scale) / height) - EXTRA_ROWS);
  const to = Math.min(count, Math.ceil((view.top * scale + view.size) / height) + EXTRA_ROWS);

  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return undefined;
    const observer = new ResizeObserver(() => setView({ top: element.scrollTop, size: element.clientHeight }));
    observer.observe(element);
    return () => observer.disconnect();
  }, []);
  useEffect(() => props.onRange?.(from, to), [from, to, count]);
  useLayoutEffect(() => {
    const element = box.current;
    if (!element || focus < 0) return;
    const at = (focus * height) / scale;
    if (at < element.scrollTop || at + height > element.scrollTop + element.clientHeight - (grid?.headHeight ?? 0)) {
      element.scrollTop = at - element.clientHeight / 3;
    }
  }, [focus, count]);

  const lines = [];
  for (let i = from; i < to; i++) {
    const top = i * height - view.top * scale + view.top;
    lines.push(<div key={i} class="row" role="presentation" style={{ top: `${top}px`, height: `${height}px` }}>{props.row(i)}</div>);
  }
  return (
    <div class="rows" ref={box} role={grid ? "grid" : props.role ?? "group"} aria-label={props.label} tabIndex={grid ? 0 : -1}
      {...(grid && { "aria-rowcount": count + 1, "aria-activedescendant": grid.activeId, onKeyDown: grid.onKeyDown })}
      onScroll={(event) => setView({ top: event.currentTarget.scrollTop, size: event.currentTarget.clientHeight })}>
      {grid?.head}
      <div class="rows-space" role={grid ? "rowgroup" : "presentation"} style={{ height: `${shown}px` }}>{lines}</div>
    </div>
  );
}
