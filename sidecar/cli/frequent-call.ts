/** What crond and a service call; `main` parses these by hand, so that they load nothing that they do not use (DESIGN 12). */
export const FREQUENT_COMMANDS = ['tick', 'ingest', 'serve'] as const;
export type FrequentCommand = (typeof FREQUENT_COMMANDS)[number];

export interface FrequentCall {
  readonly command: FrequentCommand;
  readonly dataDir: string | null;
  readonly json: boolean;
  /** Of `serve` alone. */
  readonly listen?: string;
}

/** Reads `COMMAND [--data-dir D] [--json]`, for serve also `[--listen ADDRESS]`, in any order; undefined for everything that needs the full parser. */
export function parseFrequent(words: readonly string[]): FrequentCall | undefined {
  let command: FrequentCommand | undefined;
  let dataDir: string | null = null;
  let listen: string | null = null;
  let json = false;
  for (let at = 0; at < words.length; at += 1) {
    const word = words[at] as string;
    if (word === '--json') json = true;
    else if (word === '--data-dir' && at + 1 < words.length && dataDir === null) dataDir = words[(at += 1)] as string;
    else if (word.startsWith('--data-dir=') && dataDir === null) dataDir = word.slice('--data-dir='.length);
    else if (word === '--listen' && at + 1 < words.length && listen === null) listen = words[(at += 1)] as string;
    else if (word.startsWith('--listen=') && listen === null) listen = word.slice('--listen='.length);
    else if (command === undefined && (FREQUENT_COMMANDS as readonly string[]).includes(word)) command = word as FrequentCommand;
    else return undefined;
  }
  if (command === undefined || (listen !== null && command !== 'serve')) return undefined;
  return { command, dataDir, json, ...(listen === null ? {} : { listen }) };
}
