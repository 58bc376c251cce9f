/** What can be expected to go wrong is a value, not an exception: `refused` names the field or rule that was broken. */
export type Result<Value> =
  | { readonly ok: true; readonly value: Value }
  | { readonly ok: false; readonly field: string; readonly rule: string };

/** A result that holds `value`. */
export function accepted<Value>(value: Value): Result<Value> {
  return { ok: true, value };
}

/** A refusal: `field` is the name of what is wrong, `rule` a sentence that says what it must be. */
export function refused<Value>(field: string, rule: string): Result<Value> {
  return { ok: false, field, rule };
}
