import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import { codeOf } from '../domain/error-code.js';
import type { Clock } from '../host/clock.js';
import { explained } from '../ledger/database.js';
import { explain, notNow, rawResponse, type Answer, type Failure } from './answer.js';
import { failureOf, parseBody } from './callbacks.js';
import type { CommitQueue } from './commit-queue.js';
import { BODY_BYTES_MAX, hasUnreadBody, judgeHead, type Call } from './message.js';
import type { WriteRoute } from './routes.js';
import type { ServedLedger } from './served-ledger.js';
import type { Trouble } from './trouble.js';

/** Clients at once (DESIGN 11); as many more are told that there is no room, and whoever comes then is hung up on. */
export const CONNECTIONS_MAX = 64;

/** From a connection, or the answer before, to the end of the next one (ms): however slowly a client writes or reads. */
const EXCHANGE_MS = 10_000;

/** How long a client that does not go on keeps its connection (ms). */
const KEEP_ALIVE_MS = 5_000;

/** How long a client that found no room may take to read that (ms). */
const NO_ROOM_MS = 1_000;

const HEADERS_BYTES_MAX = 8 * 1024;

interface Client {
  readonly deadline: NodeJS.Timeout;
  /** Requests that have begun and are not answered yet. */
  readonly open: Set<IncomingMessage>;
  /** What had been read when the last answer was out: more than that is the beginning of another request. */
  bytesAnswered: number;
  /** What is said when all that is read is answered: nothing more is understood of this client. */
  lastWords: Failure | undefined;
  /** An answer that ends the connection is on its way. */
  isEnding: boolean;
}

/** Told apart by the listener: on the socket file the file system has judged who may ask. */
export type Authorization = (header: string | undefined) => boolean;

export interface ReceiverParts {
  readonly ledger: ServedLedger;
  readonly queue: CommitQueue;
  readonly trouble: Trouble;
  readonly clock: Clock;
}

/**
 * The HTTP side of `serve`. It holds no listener: connections are handed to it by `admit`, so that all listeners share one
 * bound, and Node's own interval over connections, which would wake an idle process, is never begun. A timer exists only
 * while a client does.
 */
export class Receiver {
  readonly #http: Server;
  readonly #clients = new Map<Socket, Client>();
  readonly #authorizations = new WeakMap<Socket, Authorization>();
  #withoutRoom = 0;
  #isStopping = false;
  #onEmpty: (() => void) | undefined;

  constructor(readonly parts: ReceiverParts) {
    this.#http = createServer({ maxHeaderSize: HEADERS_BYTES_MAX, keepAliveTimeout: KEEP_ALIVE_MS, requireHostHeader: false });
    this.#http.on('request', (request, response) => this.#take(request, response));
    this.#http.on('checkContinue', (request: IncomingMessage, response: ServerResponse) => this.#take(request, response));
    this.#http.on('checkExpectation', (_request: IncomingMessage, response: ServerResponse) => {
      this.#send(response, explain({ status: 417, error: 'must be 100-continue', field: 'expect' }), true);
    });
    this.#http.on('connect', (_request: IncomingMessage, socket: Socket) => {
      this.#say(socket, { status: 405, error: 'is not served here', field: 'method', headers: ['Allow', 'GET, HEAD, POST, PUT'] });
    });
    this.#http.on('clientError', (error: Error, socket: Socket) => this.#notUnderstood(error, socket));
  }

  /** How many clients are connected. */
  get connections(): number {
    return this.#clients.size;
  }

  /** Takes a connection in, or refuses it where there are too many. */
  admit(socket: Socket, isAuthorized: Authorization): void {
    socket.on('error', () => socket.destroy());
    if (this.#clients.size >= CONNECTIONS_MAX) {
      this.#turnAway(socket);
      return;
    }
    const deadline = setTimeout(() => this.#expire(socket), EXCHANGE_MS);
    this.#clients.set(socket, { deadline, open: new Set(), bytesAnswered: 0, lastWords: undefined, isEnding: false });
    this.#authorizations.set(socket, isAuthorized);
    socket.once('close', () => {
      clearTimeout(deadline);
      this.#clients.delete(socket);
      if (this.#clients.size === 0) this.#onEmpty?.();
    });
    this.#http.emit('connection', socket);
  }

  /** Answers what is in flight, lets go of everyone else, and resolves when nobody is left or after `ms`. */
  async stop(ms: number): Promise<void> {
    this.#isStopping = true;
    this.parts.queue.flush();
    for (const [socket, client] of this.#clients) {
      if (socket.bytesRead === client.bytesAnswered) socket.destroySoon();
    }
    if (this.#clients.size === 0) return;
    await new Promise<void>((resolve) => {
      const over = setTimeout(resolve, ms);
      this.#onEmpty = () => {
        clearTimeout(over);
        resolve();
      };
    });
    for (const socket of this.#clients.keys()) socket.destroy();
  }

  #take(request: IncomingMessage, response: ServerResponse): void {
    this.#clients.get(request.socket)?.open.add(request);
    const verdict = judgeHead(request, this.#authorizations.get(request.socket) ?? (() => false));
    if (verdict.kind === 'failed') {
      this.#send(response, explain(verdict.failure, verdict.isPanelRoute), hasUnreadBody(request));
      return;
    }
    if (verdict.route.kind === 'write') this.#receive(request, response, verdict.route);
    else this.#read(request, response, verdict);
  }

  #read(request: IncomingMessage, response: ServerResponse, { route, rest, query }: Call): void {
    if (route.kind !== 'read') return;
    let answer: Answer | Failure;
    try {
      answer = route.answer(this.parts.ledger, { rest, query, nowMs: this.parts.clock() });
    } catch (error) {
      answer = this.#failure(error);
    }
    this.#send(response, 'error' in answer ? explain(answer) : answer, hasUnreadBody(request));
  }

  #receive(request: IncomingMessage, response: ServerResponse, route: WriteRoute): void {
    const { queue } = this.parts;
    const chunks: Buffer[] = [];
    let bytes = 0;
    let isOver = false;
    const over = (): boolean => {
      if (isOver) return false;
      isOver = true;
      queue.arrived();
      return true;
    };
    queue.expect();
    request.on('data', (chunk: Buffer) => {
      bytes += chunk.length;
      if (bytes <= BODY_BYTES_MAX) chunks.push(chunk);
      else if (over()) {
        request.pause();
        const failure: Failure = { status: 413, error: `must be at most ${BODY_BYTES_MAX} bytes`, field: 'body' };
        this.#send(response, explain(failure, route.isPanelRoute), true);
      }
    });
    request.once('end', () => {
      if (over()) this.#submit(response, route, chunks.length === 1 ? (chunks[0] as Buffer) : Buffer.concat(chunks));
    });
    // The client has gone in the middle of it: nothing of it was asked for.
    request.once('close', over);
    if (request.headers.expect !== undefined) response.writeContinue();
  }

  #submit(response: ServerResponse, route: WriteRoute, body: Buffer): void {
    const { queue, ledger, trouble } = this.parts;
    const parsed = parseBody(body);
    const understood = parsed.ok ? route.understand(parsed.value, body.length) : { kind: 'failed' as const, failure: parsed.failure };
    if (understood.kind === 'failed') {
      this.#send(response, explain(understood.failure, route.isPanelRoute), false);
      return;
    }
    queue.submit(understood, (verdict) => {
      if (verdict.kind === 'accepted') {
        this.#send(response, route.answer(verdict.outcomes), false);
        return;
      }
      if (verdict.kind === 'unavailable') trouble.say('ledger', verdict.error, ledger.invocation.paths.ledger);
      const isList = parsed.ok && Array.isArray(parsed.value);
      this.#send(response, explain(failureOf(verdict, isList, ledger.invocation.paths.ledger), route.isPanelRoute), false);
    });
  }

  #send(response: ServerResponse, answer: Answer, isLast: boolean): void {
    const { socket } = response.req;
    const { status, type, body, headers } = answer;
    const client = this.#clients.get(socket);
    if (client !== undefined && isLast) client.isEnding = true;
    response.once('finish', () => this.#answered(socket, response.req));
    response.writeHead(status, [
      'Content-Type',
      type,
      'Content-Length',
      String(Buffer.byteLength(body)),
      'Cache-Control',
      'no-store',
      'X-Content-Type-Options',
      'nosniff',
      ...headers,
      ...(isLast || this.#isStopping ? ['Connection', 'close'] : []),
    ]);
    response.end(body);
  }

  #answered(socket: Socket, request: IncomingMessage): void {
    const client = this.#clients.get(socket);
    if (client === undefined) return;
    client.deadline.refresh();
    client.bytesAnswered = socket.bytesRead;
    client.open.delete(request);
    if (client.lastWords !== undefined && !isAnswerDue(client)) this.#say(socket, client.lastWords);
  }

  /** What no request could be made of. Answers that are still due come first: this is none of theirs. */
  #notUnderstood(error: Error, socket: Socket): void {
    const failure = failureOfParser(codeOf(error));
    const client = this.#clients.get(socket);
    if (client?.isEnding === true) return;
    if (client !== undefined && isAnswerDue(client)) client.lastWords = failure;
    else this.#say(socket, failure);
  }

  #expire(socket: Socket): void {
    const client = this.#clients.get(socket);
    if (client === undefined || socket.bytesRead === client.bytesAnswered) socket.destroy();
    else this.#say(socket, { status: 408, error: `must arrive within ${EXCHANGE_MS / 1000} s`, field: 'request' });
  }

  #say(socket: Socket, failure: Failure): void {
    if (!socket.writable) {
      socket.destroy();
      return;
    }
    socket.write(rawResponse(failure));
    socket.destroySoon();
  }

  #turnAway(socket: Socket): void {
    if (this.#withoutRoom >= CONNECTIONS_MAX || this.#isStopping) {
      socket.destroy();
      return;
    }
    this.#withoutRoom += 1;
    const over = setTimeout(() => socket.destroy(), NO_ROOM_MS);
    socket.once('close', () => {
      clearTimeout(over);
      this.#withoutRoom -= 1;
    });
    // What it has sent is taken from it: a connection that ends with unread bytes can take the answer with it.
    socket.resume();
    socket.end(rawResponse(notNow(`has ${CONNECTIONS_MAX} connections`, 'server')));
  }

  #failure(error: unknown): Failure {
    const { ledger, trouble } = this.parts;
    const file = ledger.invocation.paths.ledger;
    trouble.say('request', error, file);
    const code = codeOf(error);
    if (code.startsWith('SQLITE') || (error instanceof Error && error.name === 'OperatorError')) {
      return notNow(explained(error, file).what, 'ledger');
    }
    return { status: 500, error: 'failed inside', field: 'server' };
  }
}

/** Whether a request that was read to its end is not answered yet. */
function isAnswerDue({ open }: Client): boolean {
  for (const request of open) if (request.complete) return true;
  return false;
}

function failureOfParser(code: string): Failure {
  switch (code) {
    case 'HPE_HEADER_OVERFLOW':
      return { status: 431, error: `must be at most ${HEADERS_BYTES_MAX} bytes`, field: 'headers' };
    case 'HPE_CHUNK_EXTENSIONS_OVERFLOW':
      return { status: 413, error: 'has too long chunk extensions', field: 'body' };
    default:
      return { status: 400, error: 'is not HTTP/1.1', field: 'request' };
  }
}
