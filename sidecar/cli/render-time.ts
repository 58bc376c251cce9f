/** How instants are shown: in the local zone unless `utc`. Built on Date alone; Intl would cost 8 MiB (LIMITS). */
export function renderInstant(ms: number, utc: boolean): string {
  const date = new Date(ms);
  if (utc) return `${date.toISOString().slice(0, 23).replace('T', ' ')}Z`;
  const offset = -date.getTimezoneOffset();
  const sign = offset < 0 ? '-' : '+';
  const zone = `${sign}${two(Math.floor(Math.abs(offset) / 60))}:${two(Math.abs(offset) % 60)}`;
  const shifted = new Date(ms + offset * 60_000).toISOString();
  return `${shifted.slice(0, 23).replace('T', ' ')}${zone}`;
}

/** Month, day and second: what a table row has room for. */
export function renderShort(ms: number, utc: boolean): string {
  return renderInstant(ms, utc).slice(5, 19);
}

/** A span in ms as people say it, in six columns at most: `0.4s`, `12s`, `3m05s`, `2h10m`, `3d04h`, `120d`, `28y`. */
export function renderSpan(ms: number): string {
  if (ms < 9_950) return `${(ms / 1000).toFixed(1)}s`;
  const seconds = Math.round(ms / 1000);
  if (seconds < 60) return `${seconds}s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes}m${two(seconds % 60)}s`;
  const hours = Math.floor(minutes / 60);
  if (hours < 24) return `${hours}h${two(minutes % 60)}m`;
  const days = Math.floor(hours / 24);
  // A clock that was not yet set when a task began makes a span of years.
  if (days >= 10_000) return `${Math.floor(days / 365.25)}y`;
  return days < 100 ? `${days}d${two(hours % 24)}h` : `${days}d`;
}

function two(value: number): string {
  return String(value).padStart(2, '0');
}
