// make test: runs every test, and ends with one line `N passed, N failed`. What it is given goes to ava (files, --match).
import { spawn } from 'node:child_process';
import { createInterface } from 'node:readline';

const child = spawn('npx', ['ava', '--tap', ...process.argv.slice(2)], { stdio: ['ignore', 'pipe', 'inherit'] });
const counts = { passed: 0, failed: 0, skipped: 0 };

for await (const line of createInterface({ input: child.stdout })) {
  if (/^ok .*# (SKIP|TODO)/i.test(line)) counts.skipped += 1;
  else if (line.startsWith('ok ')) counts.passed += 1;
  else if (line.startsWith('not ok ')) counts.failed += 1;
  // Passing tests are counted, not listed: what is left to read is what matters.
  if (!line.startsWith('ok ') && !/^(TAP version|# (?!tests)|1\.\.)/.test(line)) console.log(line);
  else if (/# SKIP/i.test(line)) console.log(line);
}
const code = await new Promise((resolve) => (child.exitCode === null ? child.once('close', resolve) : resolve(child.exitCode)));
// A run that broke off without a failing test is a failure all the same.
if (code !== 0 && counts.failed === 0) counts.failed = 1;
if (counts.skipped > 0) console.log(`${counts.skipped} skipped`);
console.log(`${counts.passed} passed, ${counts.failed} failed`);
process.exitCode = counts.failed === 0 && counts.passed > 0 ? 0 : 1;
