import type { Connection } from './database.js';

/** Counts that wait for the transaction they belong to, so that one-shot processes add up (ADR-0002 §16.1). */
export class CounterBatch {
  readonly #pending = new Map<string, number>();

  /** Adds `by` to a counter. `labels` is the label part of its Prometheus name, e.g. `origin="manual"`, or empty. */
  add(name: string, labels = '', by = 1): void {
    const key = `${name}\n${labels}`;
    this.#pending.set(key, (this.#pending.get(key) ?? 0) + by);
  }

  get isEmpty(): boolean {
    return this.#pending.size === 0;
  }

  /** Writes what waits, inside the caller's transaction. Call `clear` once that has committed. */
  write(connection: Connection): void {
    if (this.#pending.size === 0) return;
    const add = connection.prepare(
      `INSERT INTO counters (name, labels, value) VALUES (?, ?, ?)
       ON CONFLICT (name, labels) DO UPDATE SET value = value + excluded.value`,
    );
    for (const [key, value] of this.#pending) {
      const [name, labels] = key.split('\n');
      add.run(name, labels, value);
    }
  }

  /** Answers what brings the batch back to this moment, for a transaction that is rolled back. */
  mark(): () => void {
    const then = [...this.#pending];
    return () => {
      this.#pending.clear();
      for (const [key, value] of then) this.#pending.set(key, value);
    };
  }

  clear(): void {
    this.#pending.clear();
  }
}

export interface CounterRow {
  readonly name: string;
  readonly labels: string;
  readonly value: number;
}

/** All counters, ordered by name and labels. */
export function readCounters(connection: Connection): readonly CounterRow[] {
  return connection.prepare('SELECT name, labels, value FROM counters ORDER BY name, labels').all() as CounterRow[];
}
