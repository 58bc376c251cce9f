import type { Acceptance, Submission } from '../operations/accept.js';

/** What a submission is answered: accepted, refused, or not now (nothing of it is written; it may come again). */
export type Verdict = Acceptance | { readonly kind: 'unavailable'; readonly error: unknown } | { readonly kind: 'crowded' };

interface Waiting {
  readonly submission: Submission;
  readonly answer: (verdict: Verdict) => void;
}

/** How long a commit waits for others that are on their way (ms). */
const WINDOW_MS = 1;

/** Submissions that may wait at once, and envelopes of one transaction: above, a client is asked to come again. */
const WAITING_MAX = 256;
const ENVELOPES_PER_COMMIT = 1_024;

/**
 * Durable group commit (LIMITS, Receiver): each submission is answered after the commit that holds it, and those that come
 * together share one. A submission alone is committed at once. When others are in flight, the commit waits for them: until as
 * many have come as last time and a turn of the event loop brings no more, until every connection has one waiting, or until
 * the window of 1 ms is over. There is no timer while nothing waits.
 */
export class CommitQueue {
  #waiting: Waiting[] = [];
  #window: NodeJS.Timeout | undefined;
  #isTurnAwaited = false;
  #unfinished = 0;
  #lastGroup = 1;

  /** `commit` makes submissions durable, or throws and has written none. `connections` counts the clients there are. */
  constructor(
    readonly commit: (submissions: readonly Submission[]) => readonly Acceptance[],
    readonly connections: () => number,
  ) {}

  /** A request that will submit something has begun to arrive; call `arrived` once when it has, or never will. */
  expect(): void {
    this.#unfinished += 1;
  }

  arrived(): void {
    this.#unfinished -= 1;
  }

  submit(submission: Submission, answer: (verdict: Verdict) => void): void {
    if (this.#waiting.length >= WAITING_MAX) {
      answer({ kind: 'crowded' });
      return;
    }
    this.#waiting.push({ submission, answer });
    if (this.#waiting.length >= this.connections()) this.flush();
    else this.#awaitTurn();
  }

  /** Commits what waits, now. */
  flush(): void {
    clearTimeout(this.#window);
    this.#window = undefined;
    const group = this.#takeGroup();
    if (group.length === 0) return;
    this.#lastGroup = group.length;
    let verdicts: readonly Verdict[];
    try {
      verdicts = this.commit(group.map(({ submission }) => submission));
    } catch (error) {
      verdicts = group.map(() => ({ kind: 'unavailable', error }));
    }
    group.forEach(({ answer }, index) => answer(verdicts[index] as Verdict));
    if (this.#waiting.length > 0) this.#awaitTurn();
  }

  /** The next turn of the event loop: whatever has reached this machine by then has been read. */
  #awaitTurn(): void {
    if (this.#isTurnAwaited) return;
    this.#isTurnAwaited = true;
    const before = this.#waiting.length;
    setImmediate(() => {
      this.#isTurnAwaited = false;
      this.#decide(this.#waiting.length > before);
    });
  }

  #decide(isGrowing: boolean): void {
    const { length } = this.#waiting;
    if (length === 0) return;
    const isAlone = length === 1 && this.#lastGroup === 1 && this.#unfinished === 0;
    const isComplete = length > 1 && length >= this.#lastGroup && !isGrowing && this.#unfinished === 0;
    if (isAlone || isComplete) {
      this.flush();
      return;
    }
    this.#window ??= setTimeout(() => this.flush(), WINDOW_MS);
    if (isGrowing) this.#awaitTurn();
  }

  #takeGroup(): Waiting[] {
    let envelopes = 0;
    let size = 0;
    for (const { submission } of this.#waiting) {
      envelopes += submission.kind === 'envelopes' ? submission.envelopes.length : submission.callback.cronIds.length;
      if (size > 0 && envelopes > ENVELOPES_PER_COMMIT) break;
      size += 1;
    }
    return this.#waiting.splice(0, size);
  }
}
