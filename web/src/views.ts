// The views, in the order of their tabs. A new view is one file in views/ and one line here.
import type { ViewKind } from "./view";
import { FIRST_VIEW } from "./views/first_view";
import { LIST_VIEW } from "./views/list_view";
import { PARTS_VIEWS } from "./views/parts_views";

export const VIEWS: readonly ViewKind[] = [LIST_VIEW, FIRST_VIEW, ...PARTS_VIEWS];
