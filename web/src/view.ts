// What a view is and what it gets. A view is one class in one file of views/, registered in views.ts.
import type { Api } from "./api";
import type { Session } from "./session";
import type { State } from "./state";
import type { Say, TextKey } from "./texts";
import type { Meta, NodeRow } from "./types";

export interface GoOptions {
  // Without a step of its own in the browser's history.
  readonly replace?: boolean;
}

export interface Context {
  readonly api: Api;
  readonly session: Session;
  readonly say: Say;
  // Changes the address and with it everything that is shown; ends in show() of the view.
  go(change: Partial<State>, options?: GoOptions): void;
  // Selects a node; `view` also goes to that view. Opens the tree as far as needed.
  select(row: NodeRow, view?: string): void;
  // Goes to the first wrong call.
  first(): void;
  // A line at the bottom for some seconds, read out by screen readers.
  notice(text: string): void;
  copy(text: string, said?: string): void;
  // Shows a line of a source file.
  source(file: string, line: number): void;
}

export interface View {
  // Called after every change of the state, of the selection and of what the session has loaded.
  show(state: State): void;
  // A key that nobody took before; true if it is used up.
  key?(event: KeyboardEvent): boolean;
  // The picture of the view for an export; views without one are exported as tables.
  picture?(): Picture | null;
  dispose(): void;
}

export interface Picture {
  readonly svg: () => string;
  readonly png: () => Promise<Blob | null>;
}

export interface ViewKind {
  // Name in the address: "view=first".
  readonly key: string;
  readonly title: TextKey;
  // Key that opens it, as in keys.ts; empty: none.
  readonly shortcut: string;
  // Whether it has the whole page, without the flow and the details of the selected call below.
  readonly isWhole?: boolean;
  // Whether there is anything to show; `isServed`: by a program, not by the data in a file.
  appliesTo(meta: Meta, isServed: boolean): boolean;
  create(root: HTMLElement, context: Context): View;
}
