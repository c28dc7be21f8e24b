// The views, in the order of their tabs. A new view is one file in views/ and one line here.
import type { ComponentType } from "preact";
import { isGraph, kindOf } from "./dataset_kind";
import { PartsView, type ViewProps } from "./parts/kit";
import { REPORT_FACT } from "./report/file_dataset";
import type { TextKey } from "./texts";
import type { Session } from "./session";
import type { ViewKind } from "./view";
import { BaselineView } from "./views/baseline";
import { FirstView } from "./views/first";
import { GRAPH_VIEW } from "./views/graph_view";
import { ListView } from "./views/list";
import { OUTLINE_VIEW } from "./views/outline_view";
import { OverflowView } from "./views/overflow";
import { RanksView } from "./views/ranks";
import { ReportView } from "./views/report_view";
import { StructureView } from "./views/structure";
import { SummaryView } from "./views/summary";
import { TableView } from "./views/table_view";
import { TimelineView } from "./views/timeline";
import { TrendView } from "./views/trend";
import { ValueView } from "./views/value";

type Applies = ViewKind["appliesTo"];

// Lists of calls: the selected one is told of below them.
const WITH_DETAILS: ReadonlySet<string> = new Set(["list", "first", "structure", "overflow"]);

const kind = (key: string, title: TextKey, shortcut: string, appliesTo: Applies, component: ComponentType<ViewProps>): ViewKind =>
  ({ key, title, shortcut, appliesTo, isWhole: !WITH_DETAILS.has(key), create: (root, context) => new PartsView(root, context, component) });

const always: Applies = () => true;
const isComparison: Applies = (meta) => meta.kind === "compare";
// Of a program's result only: a page in a file has no answers to these.
const served = (applies: Applies): Applies => (meta, isServed) => isServed && applies(meta, isServed);

const VIEWS: readonly ViewKind[] = [
  kind("report", "view.report", "", (meta) => meta.facts[REPORT_FACT] === true, ReportView),
  GRAPH_VIEW,
  OUTLINE_VIEW,
  kind("list", "view.list", "3", always, ListView),
  kind("first", "view.first", "F", isComparison, FirstView),
  kind("value", "view.value", "V", served(always), ValueView),
  kind("structure", "view.structure", "", served(isComparison), StructureView),
  kind("timeline", "view.timeline", "C", served((meta) => meta.ranks.length > 1), TimelineView),
  kind("ranks", "view.ranks", "", (meta) => meta.kind === "compare" && meta.places.length > 1, RanksView),
  kind("overflow", "view.overflow", "", (meta) => meta.overflow_check, OverflowView),
  kind("trend", "view.trend", "T", served((meta) => kindOf(meta) === "trend" || meta.steps.length > 1), TrendView),
  kind("table", "view.table", "", (meta) => kindOf(meta) === "table", TableView),
  kind("baseline", "view.baseline", "", served(isComparison), BaselineView),
  kind("summary", "view.summary", "", always, SummaryView),
];

// Those that have anything to show of a dataset; what is no graph has one view.
export function viewsOf({ meta, api }: Session): readonly ViewKind[] {
  return VIEWS.filter((each) => each.appliesTo(meta, api.isServed) && (isGraph(meta) || each.key === kindOf(meta)));
}
