// The views, in the order of their tabs. A new view is one file in views/ and one line here.
import type { ViewKind } from "./view";

export const VIEWS: readonly ViewKind[] = [];
