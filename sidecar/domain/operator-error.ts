/** Exit codes of the command line (DESIGN 10). */
export const EXIT = {
  done: 0,
  found: 1,
  usage: 2,
  panelUnavailable: 69,
  ledger: 74,
  tryAgain: 75,
  configuration: 78,
} as const;

export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** What cannot go on, told to a person in one line: what, where, what to do. Never carries a stack to a screen. */
export class OperatorError extends Error {
  override readonly name = 'OperatorError';

  constructor(
    readonly what: string,
    readonly where: string,
    readonly remedy: string,
    readonly exitCode: ExitCode,
  ) {
    super(`${what}: ${where}; ${remedy}`);
  }
}
