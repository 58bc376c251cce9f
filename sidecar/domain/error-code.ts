/** The error code of SQLite or the system (`SQLITE_BUSY`, `ENOENT`), or an empty string. */
export function codeOf(error: unknown): string {
  return typeof error === 'object' && error !== null && 'code' in error && typeof error.code === 'string'
    ? error.code
    : '';
}
