import { once } from 'node:events';
import { lstatSync, rmSync } from 'node:fs';
import { createServer, type AddressInfo, type Server } from 'node:net';
import type { ListenAddress } from '../domain/listen-address.js';
import { EXIT, OperatorError } from '../domain/operator-error.js';
import type { Authorization, Receiver } from './receiver.js';

/** What a socket address of Linux can hold, without its final zero (bytes). */
const SOCKET_PATH_MAX = 107;

/**
 * Listens on the socket file, 0600 from its first instant. Whoever calls holds the lock of the directory: a socket that is
 * there was left by a process that is dead, and is replaced. Throws `OperatorError` where the path cannot be used.
 */
export async function listenOnFile(path: string, receiver: Receiver): Promise<Server> {
  if (Buffer.byteLength(path) > SOCKET_PATH_MAX) {
    throw new OperatorError(`socket path is longer than ${SOCKET_PATH_MAX} bytes`, path, 'set QL_SIDECAR_DIR to a shorter one', EXIT.configuration);
  }
  const found = lstatSync(path, { throwIfNoEntry: false });
  if (found !== undefined && !found.isSocket()) {
    throw new OperatorError('not a socket', path, 'move it away', EXIT.ledger);
  }
  rmSync(path, { force: true });
  const server = serverFor(receiver, () => true);
  // Binding happens inside `listen`, before anything else of this process can make a file.
  const mask = process.umask(0o177);
  try {
    server.listen({ path });
  } finally {
    process.umask(mask);
  }
  await once(server, 'listening');
  return server;
}

/** Listens on TCP; answers the address with the port that it got. */
export async function listenOnLoopback(
  address: ListenAddress,
  receiver: Receiver,
  isAuthorized: Authorization,
): Promise<{ readonly server: Server; readonly url: string }> {
  const server = serverFor(receiver, isAuthorized);
  server.listen({ ...address, exclusive: true });
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  return { server, url: `http://${address.host.includes(':') ? `[${address.host}]` : address.host}:${port}` };
}

function serverFor(receiver: Receiver, isAuthorized: Authorization): Server {
  // Half open, as HTTP wants it: a client may end its side and still wait for the answer.
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => receiver.admit(socket, isAuthorized));
  // Too many open files: that client is let go, and the listener stays.
  server.on('error', () => undefined);
  return server;
}
