/** What goes back to a client. Bodies are short texts: nothing is streamed. */
export interface Answer {
  readonly status: number;
  readonly type: string;
  readonly body: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
}

/** Why a request was not done: what must be different, and where; `field` names a header, a field or a part of the request. */
export interface Failure {
  readonly status: 400 | 401 | 404 | 405 | 408 | 413 | 415 | 417 | 431 | 500 | 503;
  readonly error: string;
  readonly field: string;
  /** Of an array: the envelope that is wrong, from 0. */
  readonly index?: number;
  readonly problems?: readonly string[];
  readonly headers?: readonly string[];
}

const JSON_TYPE = 'application/json; charset=utf-8';

/** An answer that is one JSON document. */
export function document(value: unknown): Answer {
  return { status: 200, type: JSON_TYPE, body: `${JSON.stringify(value)}\n`, headers: [] };
}

/** A failure as JSON. A 2.x client reads `code` and `message`, as the panel writes them. */
export function explain(failure: Failure, isPanelRoute = false): Answer {
  const { status, headers = [], ...told } = failure;
  const body = isPanelRoute ? { code: status, message: `${failure.field} ${failure.error}`, ...told } : told;
  return { status, type: JSON_TYPE, body: `${JSON.stringify(body)}\n`, headers };
}

/** "Not now": the client keeps what it has and comes again after a second. */
export function notNow(error: string, field: string): Failure {
  return { status: 503, error, field, headers: ['Retry-After', '1'] };
}

/** A whole response, for a socket on which no request was understood. The connection ends behind it. */
export function rawResponse(failure: Failure): string {
  const { type, body, headers } = explain(failure);
  const lines = [`HTTP/1.1 ${failure.status} ${REASONS[failure.status]}`, `Content-Type: ${type}`, `Content-Length: ${Buffer.byteLength(body)}`];
  for (let at = 0; at < headers.length; at += 2) lines.push(`${headers[at] ?? ''}: ${headers[at + 1] ?? ''}`);
  return `${lines.join('\r\n')}\r\nConnection: close\r\n\r\n${body}`;
}

const REASONS: Readonly<Record<Failure['status'], string>> = {
  400: 'Bad Request',
  401: 'Unauthorized',
  404: 'Not Found',
  405: 'Method Not Allowed',
  408: 'Request Timeout',
  413: 'Payload Too Large',
  415: 'Unsupported Media Type',
  417: 'Expectation Failed',
  431: 'Request Header Fields Too Large',
  500: 'Internal Server Error',
  503: 'Service Unavailable',
};
