import type { Invocation } from '../cli/invocation.js';

export async function serveCommand(invocation: Invocation): Promise<void> {
  throw new Error(`not yet: ${invocation.profileName}`);
}
