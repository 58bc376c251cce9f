import type { Connection } from '../ledger/database.js';
import type { ApplyContext } from './apply-envelope.js';

/**
 * Runs `work` in one transaction together with the Run that is held back and the counters that wait: all or none. After a
 * rollback the counters are as they were before, and what was remembered of the ledger is forgotten. Throws what `work`,
 * the ledger or the disk throws.
 */
export function commit<Done>(context: ApplyContext & { readonly connection: Connection }, work: () => Done): Done {
  const { connection, runs, counters } = context;
  const takeBack = counters.mark();
  try {
    const done = connection
      .transaction(() => {
        const result = work();
        runs.flush();
        counters.write(connection);
        return result;
      })
      .immediate();
    counters.clear();
    return done;
  } catch (error) {
    takeBack();
    runs.forget();
    throw error;
  }
}
