import type { Connection, Statement } from './database.js';
import { lazily, lazyValue } from './lazily.js';

interface KnownRevision {
  readonly key: number;
  firstSeenMs: number;
}

/** The keys of tasks, revisions and hosts, looked up or made once per process. Call `forget` after a rollback. */
export class Identities {
  readonly #tasks = new Map<string, number>();
  readonly #revisions = new Map<string, KnownRevision>();
  readonly #hosts = new Map<string, number>();
  readonly #findTask: () => Statement;
  readonly #insertTask: () => Statement;
  readonly #findRevision: () => Statement;
  readonly #insertRevision: () => Statement;
  readonly #seenEarlier: () => Statement;
  readonly #findHost: () => Statement;
  readonly #insertHost: () => Statement;

  constructor(connection: Connection) {
    this.#findTask = lazyValue(
      connection,
      'SELECT task_key FROM tasks WHERE project_key = 1 AND task_id = ?',
    );
    this.#insertTask = lazily(
      connection,
      'INSERT INTO tasks (project_key, task_id, cron_id, name) VALUES (1, ?, ?, ?)',
    );
    this.#findRevision = lazily(
      connection,
      'SELECT revision_key AS key, first_seen_at_ms AS firstSeenMs FROM task_revisions WHERE task_key = ? AND digest = ?',
    );
    this.#insertRevision = lazily(
      connection,
      'INSERT INTO task_revisions (task_key, digest, first_seen_at_ms) VALUES (?, ?, ?)',
    );
    // What is remembered may be old: another process can have recorded an earlier instant meanwhile.
    this.#seenEarlier = lazily(
      connection,
      'UPDATE task_revisions SET first_seen_at_ms = min(first_seen_at_ms, ?) WHERE revision_key = ?',
    );
    this.#findHost = lazyValue(
      connection,
      'SELECT host_key FROM process_hosts WHERE host = ? AND boot_id = ? AND init_start_ticks = ?',
    );
    this.#insertHost = lazily(
      connection,
      'INSERT INTO process_hosts (host, boot_id, init_start_ticks) VALUES (?, ?, ?)',
    );
  }

  /** The key of the task `legacy-cron:<id>`, or of a named one that is no panel cron. */
  task(cronId: number | null, name: string | null): number {
    const taskId = taskIdOf(cronId, name);
    return (
      this.#tasks.get(taskId) ??
      remember(this.#tasks, taskId, this.#findTask().get(taskId), () =>
        this.#insertTask().run(taskId, cronId, name),
      )
    );
  }

  /** The key of a revision of a task; `digest` in hex. Envelopes may come in any order: the earliest instant is kept. */
  revision(taskKey: number, digest: string, seenAtMs: number): number {
    const name = `${taskKey}:${digest}`;
    let known = this.#revisions.get(name);
    if (known === undefined) {
      const bytes = Buffer.from(digest, 'hex');
      known =
        (this.#findRevision().get(taskKey, bytes) as KnownRevision | undefined) ??
        { key: Number(this.#insertRevision().run(taskKey, bytes, seenAtMs).lastInsertRowid), firstSeenMs: seenAtMs };
      keep(this.#revisions, name, known);
    }
    if (seenAtMs < known.firstSeenMs) {
      this.#seenEarlier().run(seenAtMs, known.key);
      known.firstSeenMs = seenAtMs;
    }
    return known.key;
  }

  /** The key of one boot of a host; `initStartTicks` is 0 where it is not known. */
  host(host: string, bootId: string, initStartTicks: number): number {
    const key = `${bootId}:${initStartTicks}:${host}`;
    const known = this.#hosts.get(key);
    if (known !== undefined) return known;
    const bytes = Buffer.from(bootId.replaceAll('-', ''), 'hex');
    return remember(this.#hosts, key, this.#findHost().get(host, bytes, initStartTicks), () =>
      this.#insertHost().run(host, bytes, initStartTicks),
    );
  }

  forget(): void {
    this.#tasks.clear();
    this.#revisions.clear();
    this.#hosts.clear();
  }
}

/** The stable identity of a task (ADR-0002 §8.1). */
export function taskIdOf(cronId: number | null, name: string | null): string {
  return cronId === null ? `name:${name ?? ''}` : `legacy-cron:${cronId}`;
}

function remember(
  cache: Map<string, number>,
  key: string,
  found: unknown,
  insert: () => { lastInsertRowid: number | bigint },
): number {
  const value = typeof found === 'number' ? found : Number(insert().lastInsertRowid);
  keep(cache, key, value);
  return value;
}

/** Bounded: a flood of foreign identities costs look-ups, not memory. */
function keep<Value>(cache: Map<string, Value>, key: string, value: Value): void {
  if (cache.size >= 4096) cache.clear();
  cache.set(key, value);
}
