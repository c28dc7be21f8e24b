// The views that are drawn of parts: forms, tables, heat maps and charts.
import type { ComponentType } from "preact";
import { PartsView, type ViewProps } from "../parts/kit";
import { isGraph, kindOf } from "../dataset_kind";
import type { TextKey } from "../texts";
import type { Meta } from "../types";
import type { ViewKind } from "../view";
import { BaselineView } from "./baseline";
import { OverflowView } from "./overflow";
import { RanksView } from "./ranks";
import { StructureView } from "./structure";
import { SummaryView } from "./summary";
import { TableView } from "./table_view";
import { TimelineView } from "./timeline";
import { TrendView } from "./trend";
import { ValueView } from "./value";

// Lists of calls: the selected one is told of below them.
const WITH_DETAILS: ReadonlySet<string> = new Set(["structure", "overflow"]);

type Applies = ViewKind["appliesTo"];

const kind = (key: string, title: TextKey, shortcut: string, appliesTo: Applies, component: ComponentType<ViewProps>): ViewKind =>
  ({ key, title, shortcut, appliesTo, isWhole: !WITH_DETAILS.has(key), create: (root, context) => new PartsView(root, context, component) });

const isComparison = (meta: Meta): boolean => meta.kind === "compare" && isGraph(meta);
// Of a program's result only: a page in a file has no answers to these.
const served = (applies: Applies): Applies => (meta, isServed) => isServed && applies(meta, isServed);

export const PARTS_VIEWS: readonly ViewKind[] = [
  kind("value", "view.value", "V", served(isGraph), ValueView),
  kind("structure", "view.structure", "", served(isComparison), StructureView),
  kind("timeline", "view.timeline", "C", served((meta) => isGraph(meta) && meta.ranks.length > 1), TimelineView),
  kind("ranks", "view.ranks", "", (meta) => isComparison(meta) && meta.places.length > 1, RanksView),
  kind("overflow", "view.overflow", "", (meta) => isGraph(meta) && meta.overflow_check, OverflowView),
  kind("trend", "view.trend", "T", served((meta) => kindOf(meta) === "trend" || meta.steps.length > 1), TrendView),
  kind("table", "view.table", "", (meta) => kindOf(meta) === "table", TableView),
  kind("baseline", "view.baseline", "", served(isComparison), BaselineView),
  kind("summary", "view.summary", "", isGraph, SummaryView),
];
