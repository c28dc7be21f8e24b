// What may fail returns a Result; nothing of the page throws across a module's border.

export interface Failure {
  readonly code: string;
  // One sentence that says what to do.
  readonly message: string;
}

export type Result<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly error: Failure };

export const success = <T>(value: T): Result<T> => ({ ok: true, value });
export const failure = (code: string, message: string): Result<never> => ({
  ok: false,
  error: { code, message },
});
