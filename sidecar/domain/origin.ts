/**
 * Where an execution came from (ADR-0002 §5.1), in the order of the codes that the ledger stores.
 * `once` and `grpc` are reserved: accepted as words, never derived (ADR-0447 in ADR-0002 §7.1).
 */
export const ORIGINS = [
  'manual',
  'scheduled_system',
  'scheduled_node',
  'once',
  'boot',
  'grpc',
  'subscription',
  'system',
  'script',
] as const;

export type Origin = (typeof ORIGINS)[number];

/** Who causes the side effects of an execution; fixed when it is accepted (ADR-0002 §5.2). Ledger code = index. */
export const OWNERS = ['legacy', 'runtime'] as const;
export type Owner = (typeof OWNERS)[number];

/** The origins that can be shadowed, with the word that stands for each in an execution ID (DESIGN 2). */
export const KIND_OF_ORIGIN = {
  scheduled_system: 'system',
  manual: 'manual',
  scheduled_node: 'node',
  boot: 'boot',
  subscription: 'subscription',
  system: 'internal',
  script: 'script',
} as const satisfies Partial<Record<Origin, string>>;

export type ShadowOrigin = keyof typeof KIND_OF_ORIGIN;

/** Whether `text` names an origin, reserved ones included. */
export function isOrigin(text: string): text is Origin {
  return (ORIGINS as readonly string[]).includes(text);
}

/** Whether runs of this origin can be observed in shadow mode. */
export function isShadowOrigin(text: string): text is ShadowOrigin {
  return Object.hasOwn(KIND_OF_ORIGIN, text);
}

/** The code that the ledger stores for an origin. */
export function originCode(origin: Origin): number {
  return ORIGINS.indexOf(origin);
}
