import type { Connection, Statement } from './database.js';

/** A statement that is prepared when it is first asked for: a pass that uses three of twelve pays for three. */
export function lazily(connection: Connection, sql: string): () => Statement {
  let statement: Statement | undefined;
  return () => (statement ??= connection.prepare(sql));
}

/** The same for a query of one column: its rows are bare values. */
export function lazyValue(connection: Connection, sql: string): () => Statement {
  let statement: Statement | undefined;
  return () => (statement ??= connection.prepare(sql).pluck());
}
