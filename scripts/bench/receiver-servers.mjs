// What the receiver is measured against: `bare`, a node:http server that answers 204 to everything, and `single`, the
// receiver itself with a commit of its own for each request. Usage: receiver-servers.mjs bare|single SOCKET [DATA]
import { createServer } from 'node:http';
import { createServer as createNetServer } from 'node:net';

const [kind, socketPath, data] = process.argv.slice(2);
if (kind === 'bare') {
  createServer((request, response) => {
    request.resume();
    request.once('end', () => response.writeHead(204).end());
  }).listen(socketPath, () => console.log('listening'));
} else {
  const from = (name) => import(new URL(`../../build/sidecar/${name}.js`, import.meta.url));
  const [{ prepare }, { accept }, { Receiver }, { ServedLedger }, { Trouble }] = await Promise.all(
    ['cli/invocation', 'operations/accept', 'http/receiver', 'http/served-ledger', 'http/trouble'].map(from),
  );
  const ledger = new ServedLedger(prepare({ dataDir: data, json: false }));
  const queue = {
    expect() {},
    arrived() {},
    flush() {},
    submit: (submission, answer) => answer(accept(ledger.context(), [submission])[0]),
  };
  const receiver = new Receiver({ ledger, queue, trouble: new Trouble(Date.now), clock: Date.now });
  createNetServer({ allowHalfOpen: true }, (socket) => receiver.admit(socket, () => true)).listen(socketPath, () => console.log('listening'));
}
