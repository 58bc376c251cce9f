import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { renameSync, rmSync, writeFileSync } from 'node:fs';

/** The bell that the bridge rings after it has spooled an envelope (docs/PROTOCOL.md, Receiver announcement). */
export class Bell {
  private constructor(
    readonly socket: Socket,
    readonly announcement: string,
  ) {}

  /** Binds a free UDP port on 127.0.0.1; nobody knows of it before `announce`. What a datagram holds is not looked at. */
  static async hang(announcement: string, onRing: () => void, onError: (error: Error) => void): Promise<Bell> {
    const socket = createSocket('udp4');
    socket.bind({ address: '127.0.0.1', port: 0, exclusive: true });
    await once(socket, 'listening');
    socket.on('message', onRing);
    socket.on('error', onError);
    return new Bell(socket, announcement);
  }

  /** Writes the port where the bridge looks for it, whole or not at all. */
  announce(): void {
    const unfinished = `${this.announcement}.new`;
    rmSync(unfinished, { force: true });
    writeFileSync(unfinished, `${this.socket.address().port}\n`, { mode: 0o600, flag: 'wx' });
    renameSync(unfinished, this.announcement);
  }

  /** Takes the announcement back, then the port: in between a datagram is lost, and its envelope is in the spool. */
  takeDown(): void {
    rmSync(this.announcement, { force: true });
    this.socket.close();
  }
}
