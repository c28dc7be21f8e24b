// The views, in the order of their tabs. A new view is one file in views/ and one line here.
import { isGraph, kindOf } from "./dataset_kind";
import type { Session } from "./session";
import type { ViewKind } from "./view";
import { FIRST_VIEW } from "./views/first_view";
import { GRAPH_VIEW } from "./views/graph_view";
import { LIST_VIEW } from "./views/list_view";
import { OUTLINE_VIEW } from "./views/outline_view";
import { PARTS_VIEWS } from "./views/parts_views";
import { REPORT_VIEW } from "./views/report_view";

const VIEWS: readonly ViewKind[] = [REPORT_VIEW, GRAPH_VIEW, OUTLINE_VIEW, LIST_VIEW, FIRST_VIEW, ...PARTS_VIEWS];

// Those that have anything to show of a dataset.
export function viewsOf({ meta, api }: Session): readonly ViewKind[] {
  return VIEWS.filter((kind) => kind.appliesTo(meta, api.isServed) && (isGraph(meta) || kind.key === kindOf(meta)));
}
