import { isUtf8 } from 'node:buffer';
import { ENVELOPE_BYTES_MAX, readEnvelope, type Envelope } from '../domain/envelope.js';
import { readStatusCallback } from '../domain/legacy-callback.js';
import { explained } from '../ledger/database.js';
import type { Submission } from '../operations/accept.js';
import type { CorrelatedCallback } from '../operations/correlate.js';
import { document, notNow, type Answer, type Failure } from './answer.js';
import type { Verdict } from './commit-queue.js';

/** A body that was understood, or why it was not. */
export type Understood = Submission | { readonly kind: 'failed'; readonly failure: Failure };

const ENVELOPES_MAX = 64;

/** The JSON value of a body: UTF-8 without exception, as JSON demands; half a character would be stored as another. */
export function parseBody(body: Buffer): { readonly ok: true; readonly value: unknown } | { readonly ok: false; readonly failure: Failure } {
  if (!isUtf8(body)) return { ok: false, failure: { status: 400, error: 'must be UTF-8', field: 'body' } };
  try {
    return { ok: true, value: JSON.parse(body.toString('utf8')) };
  } catch {
    return { ok: false, failure: { status: 400, error: 'must be JSON', field: 'body' } };
  }
}

/** `POST /v1/callbacks`: one envelope, or a list; one that is wrong keeps all others of its list out (DESIGN 11). */
export function readCallbacks(value: unknown, bytes: number): Understood {
  if (!Array.isArray(value)) {
    const envelope = checkedEnvelope(value, bytes);
    return envelope.kind === 'failed' ? envelope : { kind: 'envelopes', envelopes: [envelope.envelope] };
  }
  if (value.length === 0 || value.length > ENVELOPES_MAX) {
    return failed(`must hold 1 to ${ENVELOPES_MAX} envelopes`, 'body');
  }
  const envelopes: Envelope[] = [];
  for (const [index, one] of value.entries()) {
    const envelope = checkedEnvelope(one, bytes);
    if (envelope.kind === 'failed') return { kind: 'failed', failure: { ...envelope.failure, index } };
    envelopes.push(envelope.envelope);
  }
  return { kind: 'envelopes', envelopes };
}

/** `PUT /open/crons/status`: the body of a 2.x client, with or without an execution ID. */
export function readStatus(value: unknown): Understood {
  const read = readStatusCallback(value);
  if (!read.ok) return failed(read.rule, read.field);
  return read.value.kind === 'envelope'
    ? { kind: 'envelopes', envelopes: [read.value.envelope] }
    : { kind: 'legacy', callback: read.value.callback };
}

/** One outcome per envelope, in the order of the request. */
export function answerCallbacks(outcomes: readonly CorrelatedCallback[]): Answer {
  return document({
    outcomes: outcomes.map((outcome) => {
      if (outcome.kind === 'refused') return { outcome: outcome.kind, error_class: outcome.drift };
      if (outcome.kind === 'unmatched') return { outcome: outcome.kind, error_class: outcome.errorClass };
      return { outcome: outcome.kind };
    }),
  });
}

/** What the panel answers, whatever became of it: a client of 2.x knows no other good end (ADR-0002 §11.2). */
export function answerStatus(): Answer {
  return document({ code: 200 });
}

/** Why nothing of a submission was written; undefined when it was. */
export function failureOf(verdict: Exclude<Verdict, { kind: 'accepted' }>, isList: boolean, file: string): Failure {
  switch (verdict.kind) {
    case 'refused_by_ledger':
      return { status: 400, error: 'breaks a rule of the ledger', field: 'envelope', ...(isList ? { index: verdict.index } : {}) };
    case 'unavailable':
      return notNow(explained(verdict.error, file).what, 'ledger');
    case 'crowded':
      return notNow('too many requests wait', 'server');
  }
}

function checkedEnvelope(
  value: unknown,
  bytes: number,
): { readonly kind: 'envelope'; readonly envelope: Envelope } | { readonly kind: 'failed'; readonly failure: Failure } {
  const read = readEnvelope(value);
  if (!read.ok) return failed(read.rule, read.field);
  // What the spool would refuse is refused here. Measured only where the whole body leaves room for it.
  if (bytes >= ENVELOPE_BYTES_MAX && Buffer.byteLength(JSON.stringify(value)) >= ENVELOPE_BYTES_MAX) {
    return failed(`must be at most ${ENVELOPE_BYTES_MAX} bytes in one line`, 'envelope');
  }
  return { kind: 'envelope', envelope: read.value };
}

function failed(rule: string, field: string): { readonly kind: 'failed'; readonly failure: Failure } {
  return { kind: 'failed', failure: { status: 400, error: rule, field } };
}
