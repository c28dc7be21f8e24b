// The views, in the order of their tabs. A new view is one file in views/ and one line here.
import type { ViewKind } from "./view";
import { FIRST_VIEW } from "./views/first_view";
import { GRAPH_VIEW } from "./views/graph_view";
import { LIST_VIEW } from "./views/list_view";
import { OUTLINE_VIEW } from "./views/outline_view";
import { REPORT_VIEW } from "./views/report_view";

export const VIEWS: readonly ViewKind[] = [GRAPH_VIEW, OUTLINE_VIEW, LIST_VIEW, FIRST_VIEW, REPORT_VIEW];
