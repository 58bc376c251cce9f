/**
 * Identities that a replay computes again: a UUIDv7-shaped ID from (packed execution ID, accepted instant, purpose), as
 * ADR-0446 decision 6 asks. The bits behind the time come from MurmurHash3 (x86, 128 bits; A. Appleby, public domain
 * algorithm): the input already holds 122 random bits and only has to be spread, and a cryptographic hash would cost
 * an ingesting tick 2 MiB of memory. A collision could only be refused as drift, never mixed up: the idempotency key decides.
 */
export type IdPurpose = 'run' | 'attempt';

const SEED = { run: 0x52554e31, attempt: 0x41545431 } as const;

/** 16 bytes: 48 bits of `atMs` (ms since 1970), version 7, variant 10, 74 derived bits. */
export function deriveId(identity: Buffer, atMs: number, purpose: IdPurpose): Buffer {
  const id = murmur128(identity, SEED[purpose]);
  id.writeUIntBE(atMs, 0, 6);
  id[6] = ((id[6] as number) & 0x0f) | 0x70;
  id[8] = ((id[8] as number) & 0x3f) | 0x80;
  return id;
}

/** 16 bytes that stand for others where only equality is asked, and nobody gains by making two of them equal. */
export function digest128(input: Buffer): Buffer {
  return murmur128(input, 0);
}

const C1 = 0x239b961b;
const C2 = 0xab0e9789;
const C3 = 0x38b34ae5;
const C4 = 0xa1e38b93;

function rotate(word: number, bits: number): number {
  return (word << bits) | (word >>> (32 - bits));
}

function finish(word: number): number {
  word = Math.imul(word ^ (word >>> 16), 0x85ebca6b);
  word = Math.imul(word ^ (word >>> 13), 0xc2b2ae35);
  return word ^ (word >>> 16);
}

function murmur128(input: Buffer, seed: number): Buffer {
  // Padding to whole blocks replaces the tail rules of the original: the length is mixed in at the end either way.
  const blocks = Math.ceil(input.length / 16);
  const padded = Buffer.alloc(blocks * 16);
  input.copy(padded);
  let h1 = seed;
  let h2 = seed;
  let h3 = seed;
  let h4 = seed;
  for (let at = 0; at < padded.length; at += 16) {
    const k1 = Math.imul(rotate(Math.imul(padded.readInt32LE(at), C1), 15), C2);
    h1 = Math.imul(rotate(h1 ^ k1, 19) + h2, 5) + 0x561ccd1b;
    const k2 = Math.imul(rotate(Math.imul(padded.readInt32LE(at + 4), C2), 16), C3);
    h2 = Math.imul(rotate(h2 ^ k2, 17) + h3, 5) + 0x0bcaa747;
    const k3 = Math.imul(rotate(Math.imul(padded.readInt32LE(at + 8), C3), 17), C4);
    h3 = Math.imul(rotate(h3 ^ k3, 15) + h4, 5) + 0x96cd1c35;
    const k4 = Math.imul(rotate(Math.imul(padded.readInt32LE(at + 12), C4), 18), C1);
    h4 = Math.imul(rotate(h4 ^ k4, 13) + h1, 5) + 0x32ac3b17;
  }
  h1 ^= input.length;
  h2 ^= input.length;
  h3 ^= input.length;
  h4 ^= input.length;
  h1 = (h1 + h2 + h3 + h4) | 0;
  h2 = (h2 + h1) | 0;
  h3 = (h3 + h1) | 0;
  h4 = (h4 + h1) | 0;
  h1 = finish(h1);
  h2 = finish(h2);
  h3 = finish(h3);
  h4 = finish(h4);
  h1 = (h1 + h2 + h3 + h4) | 0;
  const out = Buffer.allocUnsafe(16);
  out.writeInt32BE(h1, 0);
  out.writeInt32BE((h2 + h1) | 0, 4);
  out.writeInt32BE((h3 + h1) | 0, 8);
  out.writeInt32BE((h4 + h1) | 0, 12);
  return out;
}
