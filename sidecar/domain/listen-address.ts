import { accepted, refused, type Result } from './result.js';

/** Where a TCP listener binds: an address of this machine's loopback, and a port (0: any that is free). */
export interface ListenAddress {
  readonly host: string;
  readonly port: number;
}

const FORM = /^(?:(127(?:\.\d{1,3}){3})|\[(::1)\]|(localhost)):(\d{1,5})$/;

/**
 * Reads `127.0.0.1:PORT`, `[::1]:PORT` or `localhost:PORT`. Any other address is refused: callbacks are accepted from this
 * machine alone (DESIGN 11).
 */
export function parseListenAddress(text: string): Result<ListenAddress> {
  const match = FORM.exec(text);
  if (match === null) return refused('listen', 'must be a loopback address and a port, such as 127.0.0.1:5730');
  const [, v4, v6, , port] = match;
  if (v4 !== undefined && v4.split('.').some((octet) => Number(octet) > 255)) return refused('listen', 'is no IP address');
  if (Number(port) > 65_535) return refused('listen', 'must name a port up to 65535');
  return accepted({ host: v4 ?? v6 ?? '127.0.0.1', port: Number(port) });
}
