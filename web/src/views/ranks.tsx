// One cell per rank and step, or the ranks of one step as the machine is laid out, by their worst
// verdict; the first wrong call of the run is marked.
import { useState } from "preact/hooks";
import { formatCount } from "../format";
import { SYMBOL } from "../marks";
import { GAP, LEVEL_COLOURS } from "../parts/colours";
import { parallelPlace } from "../parts/grid";
import { HeatMap, type Cell } from "../parts/heat_map";
import { Choose, keep, type ViewProps } from "../parts/kit";
import type { Say } from "../texts";
import type { Level, Meta, Place } from "../types";
import { LevelKeys } from "./level_keys";
import { ParallelLayout, sizesOf } from "./parallel_layout";

export function placeLevel({ counts }: Place): Level {
  if (counts.error > 0) return "error";
  if (counts.warning > 0) return "warning";
  if (counts.unmatched_target + counts.unmatched_golden > 0) return "unmatched";
  return counts.pass > 0 ? "pass" : "none";
}

function placeText(place: Place, say: Say): string {
  const { counts } = place;
  const parts: readonly (readonly [Level, number])[] = [
    ["error", counts.error], ["warning", counts.warning], ["unmatched", counts.unmatched_target + counts.unmatched_golden],
    ["pass", counts.pass], ["none", counts.none],
  ];
  return parts.filter(([, count]) => count > 0).map(([level, count]) => `${SYMBOL[level]} ${formatCount(count)} ${say(`level.${level}`)}`).join(", ");
}

// Ranks beside each other where nothing is known of the layout.
const RANKS_IN_ROW = 8;

interface Grid {
  readonly rows: number;
  readonly columns: number;
  at(cell: Cell): Place | undefined;
  cell(place: Place): Cell;
  rowLabel(row: number): string;
  columnLabel(column: number): string;
}

function allSteps(meta: Meta, label: (rank: number) => string): Grid {
  const places = new Map(meta.places.map((place) => [`${place.rank} ${place.step}`, place]));
  return {
    rows: meta.ranks.length,
    columns: meta.steps.length,
    at: ({ row, column }) => places.get(`${meta.ranks[row] ?? ""} ${meta.steps[column] ?? ""}`),
    cell: ({ rank, step }) => ({ row: meta.ranks.indexOf(rank), column: meta.steps.indexOf(step) }),
    rowLabel: (row) => label(meta.ranks[row] ?? -1),
    columnLabel: (column) => String(meta.steps[column] ?? ""),
  };
}

function oneStep(meta: Meta, step: number, across: number, label: (rank: number) => string): Grid {
  const places = new Map(meta.places.filter((place) => place.step === step).map((place) => [place.rank, place]));
  const world = Math.max(-1, ...meta.ranks) + 1;
  return {
    rows: Math.ceil(world / across),
    columns: Math.min(across, world),
    at: ({ row, column }) => places.get(row * across + column),
    cell: ({ rank }) => ({ row: Math.floor(rank / across), column: rank % across }),
    rowLabel: (row) => label(row * across),
    columnLabel: (column) => `+${column}`,
  };
}

export function RanksView(props: ViewProps) {
  const { context, state } = props;
  const { say, session } = context;
  const { meta } = session;
  // Until it is moved, the place that is shown: the first wrong one of a page just opened.
  const [moved, setMoved] = useState<Cell | null>(null);
  const world = Math.max(-1, ...meta.ranks) + 1;
  const sizes = sizesOf(props, world);
  const { tp, pp } = sizes;
  const label = (rank: number): string => {
    const at = parallelPlace(rank, world, tp, pp);
    return at ? `${rank}  TP ${at.tp} DP ${at.dp} PP ${at.pp}` : `rank ${rank}`;
  };
  const isMap = state.extra["map"] === "ranks";
  const shown = session.placeInfo();
  const step = shown?.step ?? meta.steps[0] ?? 0;
  const grid = isMap ? oneStep(meta, step, tp > 1 && world % tp === 0 ? tp : RANKS_IN_ROW, label) : allSteps(meta, label);
  const cursor = moved ?? (shown && grid.cell(shown));
  const firstPlace = meta.first ? meta.places[meta.first.place] : undefined;
  const isFirst = (place: Place | undefined): boolean => place !== undefined && place === firstPlace;
  const isOdd = tp > 0 && pp > 0 && parallelPlace(0, world, tp, pp) === null;
  return (
    <>
      <div class="bar-of-fields">
        <Choose label={say("value.side")} value={isMap ? "ranks" : "steps"} choose={(map) => {
            setMoved(null);
            keep(context, state, { map });
          }}
          choices={[{ key: "steps", text: say("ranks.steps") }, { key: "ranks", text: say("ranks.one-step", step) }]} />
        <span class="quiet">{isOdd ? say("ranks.odd", world) : say("ranks.hint")}</span>
      </div>
      <HeatMap title={say(isMap ? "ranks.one-step" : "ranks.title", step)} say={say} rows={grid.rows} columns={grid.columns} cursor={cursor} move={setMoved}
        least={{ width: 18, height: 18 }} most={{ width: 72, height: 34 }}
        rowLabel={grid.rowLabel} columnLabel={grid.columnLabel}
        colour={(row, column) => {
          const place = grid.at({ row, column });
          return place ? LEVEL_COLOURS[placeLevel(place)] : GAP;
        }}
        text={(row, column) => {
          const place = grid.at({ row, column });
          return place ? `${isFirst(place) ? "▶" : ""}${SYMBOL[placeLevel(place)]}` : "";
        }}
        describe={(row, column) => {
          const place = grid.at({ row, column });
          if (!place) return say("ranks.none");
          const first = isFirst(place) ? `▶ ${say("flag.first")}: ` : place.first === "" ? "" : `${say("flag.first")}: `;
          return `${say("bar.step")} ${place.step}, ${label(place.rank)} — ${placeText(place, say)}. ${first}${place.first}`;
        }}
        open={(cell) => {
          const place = grid.at(cell);
          if (place) context.go({ view: "graph", step: place.step, rank: place.rank, ...(place.first === "" ? {} : { node: place.first, side: "target" }) });
        }} />
      <ParallelLayout {...props} sizes={sizes} />
      <LevelKeys say={say} extra={`▶ ${say("flag.first")}`} />
    </>
  );
}
