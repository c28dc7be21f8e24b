// The views that are drawn of parts: forms, tables, heat maps and charts.
import type { ComponentType } from "preact";
import { PartsView, type ViewProps } from "../parts/kit";
import type { TextKey } from "../texts";
import { isTrend } from "../trend_answers";
import type { Meta } from "../types";
import type { ViewKind } from "../view";
import { BaselineView } from "./baseline";
import { OverflowView } from "./overflow";
import { RanksView } from "./ranks";
import { StructureView } from "./structure";
import { SummaryView } from "./summary";
import { TimelineView } from "./timeline";
import { TrendView } from "./trend";
import { ValueView } from "./value";

// Lists of calls: the selected one is told of below them.
const WITH_DETAILS: ReadonlySet<string> = new Set(["structure", "overflow"]);

const kind = (key: string, title: TextKey, shortcut: string, appliesTo: (meta: Meta) => boolean, component: ComponentType<ViewProps>): ViewKind =>
  ({ key, title, shortcut, appliesTo, isWhole: !WITH_DETAILS.has(key), create: (root, context) => new PartsView(root, context, component) });

const isGraph = (meta: Meta): boolean => !isTrend(meta);
const isComparison = (meta: Meta): boolean => meta.kind === "compare" && isGraph(meta);

export const PARTS_VIEWS: readonly ViewKind[] = [
  kind("value", "view.value", "V", isGraph, ValueView),
  kind("structure", "view.structure", "", isComparison, StructureView),
  kind("timeline", "view.timeline", "C", isGraph, TimelineView),
  kind("ranks", "view.ranks", "", isComparison, RanksView),
  kind("overflow", "view.overflow", "", isGraph, OverflowView),
  kind("trend", "view.trend", "T", () => true, TrendView),
  kind("baseline", "view.baseline", "", isComparison, BaselineView),
  kind("summary", "view.summary", "", isGraph, SummaryView),
];
