// Columns of lists of calls.
import { formatError } from "../format";
import { LevelMark } from "../marks";
import type { Column } from "../parts/table";
import type { Session } from "../session";
import type { Say } from "../texts";
import type { NodeRow } from "../types";

type NodeColumn = "place" | "order" | "level" | "input" | "error" | "name";

export function nodeColumns(say: Say, session: Session): Readonly<Record<NodeColumn, Column<NodeRow>>> {
  return {
    place: { title: `${say("bar.step")} / ${say("bar.rank")}`, width: "7em", cell: ({ id }) => placeName(session, id) },
    order: { title: say("column.order"), width: "6em", isNumber: true, cell: ({ order }) => order },
    level: { title: say("details.column.verdict"), width: "9em", cell: ({ level }) => <LevelMark level={level} say={say} withWord /> },
    input: { title: say("column.input"), width: "7em", isNumber: true, cell: (row) => formatError(row.input_error) },
    error: { title: say("details.column.error"), width: "6em", isNumber: true, cell: (row) => formatError(row.error) },
    name: { title: say("column.name"), width: "minmax(16em, 1fr)", cell: ({ name }) => <bdi class="mono">{name}</bdi> },
  };
}

function placeName({ meta }: Session, id: number): string {
  const isIn = (root: number, count: number): boolean => root >= 0 && id >= root && id < root + count;
  const place = meta.places.find((each) => isIn(each.target_root, each.nodes) || isIn(each.golden_root, each.golden_nodes));
  return place ? `${place.step} / ${place.rank}` : "";
}
