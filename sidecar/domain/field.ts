// Checks of single fields, shared by every form in which a callback comes.

/** Whether a value is a whole number within these bounds. */
export function isInteger(value: unknown, least: number, most: number): boolean {
  return Number.isSafeInteger(value) && (value as number) >= least && (value as number) <= most;
}

/** Whether a value is a whole number from 0. */
export function isCount(value: unknown): boolean {
  return isInteger(value, 0, Number.MAX_SAFE_INTEGER);
}

/** A log path may hold anything that a file name can (ADR-0002 §9.4): only NUL and excess are refused. */
export function isLogPath(value: unknown): boolean {
  return typeof value === 'string' && value.length > 0 && value.length <= 1024 && !value.includes('\0');
}

/** The name of an unknown field as it may stand in an answer or a log. */
export function boundedName(name: string): string {
  // eslint-disable-next-line no-control-regex -- a hostile field name must not reach a terminal or a log whole
  const shown = name.slice(0, 40).replace(/[\u0000-\u001f\u007f-\u009f"\\]/g, '?');
  return shown === '' ? '(empty)' : shown;
}
