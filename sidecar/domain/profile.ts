/** Two sizes of machine, and what one pass may do on each (DESIGN 12). Counts unless the name has a unit. */
export const PROFILES = {
  edge: { ingestEnvelopes: 256, livenessChecks: 64 },
  standalone: { ingestEnvelopes: 4096, livenessChecks: 1024 },
} as const;

export type ProfileName = keyof typeof PROFILES;
export type Profile = (typeof PROFILES)[ProfileName];

const EDGE_BELOW_BYTES = 512 * 1024 * 1024;

/** The profile of a machine on which nobody chose one (DESIGN 13). */
export function profileForMemory(bytes: number): ProfileName {
  return bytes < EDGE_BELOW_BYTES ? 'edge' : 'standalone';
}
