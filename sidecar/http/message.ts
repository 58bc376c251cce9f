import type { IncomingMessage } from 'node:http';
import type { Failure } from './answer.js';
import { routeOf, type Route } from './routes.js';

/** The longest body (DESIGN 11) and the longest request target, in bytes. */
export const BODY_BYTES_MAX = 16 * 1024;
const TARGET_BYTES_MAX = 2_048;

/** A request whose head is right: what it asks for. */
export interface Call {
  readonly kind: 'call';
  readonly route: Route;
  readonly rest: string;
  readonly query: string;
}

export type HeadVerdict = Call | { readonly kind: 'failed'; readonly failure: Failure; readonly isPanelRoute: boolean };

/** Headers that say one thing: two of them are two requests in one, and whoever stands in between may read the other. */
const SINGLE = new Set(['host', 'content-length', 'content-type', 'content-encoding', 'authorization', 'expect']);

/**
 * Judges a request by its head alone, before any of its body is read: form, right to ask, path, method, kind and length of
 * the body, in this order. `isAuthorized` judges the Authorization header.
 */
export function judgeHead(request: IncomingMessage, isAuthorized: (header: string | undefined) => boolean): HeadVerdict {
  const malformed = wrongForm(request);
  if (malformed !== undefined) return failed(400, ...malformed);
  const [path, query] = splitTarget(request.url ?? '');
  const found = routeOf(path);
  const isPanelRoute = found?.route.kind === 'write' && found.route.isPanelRoute;
  if (found?.route.isOpen !== true && !isAuthorized(request.headers.authorization)) {
    return failed(401, 'must carry the token of serve.token', 'authorization', isPanelRoute, ['WWW-Authenticate', 'Bearer']);
  }
  if (found === undefined) return failed(404, 'is not served here', 'path');
  const { route, rest } = found;
  if (!allowed(route, request.method ?? '')) return failed(405, `must be ${route.allow}`, 'method', isPanelRoute, ['Allow', route.allow]);
  if (route.kind === 'write') {
    const unread = wrongBody(request);
    if (unread !== undefined) return failed(...unread, isPanelRoute);
  }
  return { kind: 'call', route, rest, query };
}

/** Whether a body follows that nobody has read: then the connection cannot go on behind the answer. */
export function hasUnreadBody(request: IncomingMessage): boolean {
  if (request.complete) return false;
  const { 'content-length': length, 'transfer-encoding': coding } = request.headers;
  return coding !== undefined || (length !== undefined && length !== '0');
}

function wrongForm(request: IncomingMessage): readonly [error: string, field: string] | undefined {
  const { rawHeaders, headers, url = '' } = request;
  const seen = new Set<string>();
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = (rawHeaders[at] ?? '').toLowerCase();
    if (!SINGLE.has(name)) continue;
    if (seen.has(name)) return ['is given twice', name];
    seen.add(name);
  }
  if (request.httpVersionMajor !== 1) return ['must be HTTP/1.1', 'request'];
  if (request.httpVersion === '1.1' && headers.host === undefined) return ['must be there', 'host'];
  if (url.length > TARGET_BYTES_MAX) return [`must be at most ${TARGET_BYTES_MAX} bytes`, 'path'];
  if (!/^(?:https?:\/\/[^/?#]*)?\/[!-~]*$/i.test(url) || url.includes('#')) return ['must be an absolute path', 'path'];
  return undefined;
}

/** A target may carry an authority (RFC 9112 §3.2.2); which one is of no matter here. */
function splitTarget(target: string): readonly [path: string, query: string] {
  const local = target.replace(/^https?:\/\/[^/]*/i, '');
  const at = local.indexOf('?');
  return at < 0 ? [local, ''] : [local.slice(0, at), local.slice(at + 1)];
}

function allowed(route: Route, method: string): boolean {
  return method === route.allow || (route.kind === 'read' && (method === 'GET' || method === 'HEAD'));
}

function wrongBody(request: IncomingMessage): readonly [415 | 413, string, string] | undefined {
  const { 'content-type': type = '', 'content-encoding': coding, 'content-length': length } = request.headers;
  if (!/^application\/json\s*(?:;\s*charset\s*=\s*"?utf-8"?\s*)?$/i.test(type)) {
    return [415, 'must be application/json in UTF-8', 'content-type'];
  }
  if (coding !== undefined && coding.toLowerCase() !== 'identity') return [415, 'must not be there', 'content-encoding'];
  if (length !== undefined && Number(length) > BODY_BYTES_MAX) return [413, `must be at most ${BODY_BYTES_MAX} bytes`, 'body'];
  return undefined;
}

function failed(
  status: Failure['status'],
  error: string,
  field: string,
  isPanelRoute = false,
  headers: readonly string[] = [],
): HeadVerdict {
  return { kind: 'failed', failure: { status, error, field, headers }, isPanelRoute };
}
