// make bench: every figure that the project promises, measured here and now, with its bar. `bench.mjs NAME...` runs some.
import { readdirSync } from 'node:fs';

const ORDER = ['bridge', 'tick', 'ingest', 'writes', 'receiver'];
const present = readdirSync(new URL('.', import.meta.url));
const wanted = process.argv.length > 2 ? process.argv.slice(2) : ORDER.filter((name) => present.includes(`${name}.mjs`));

let missed = 0;
for (const name of wanted) {
  const { run } = await import(`./${name}.mjs`);
  for await (const { name: what, value, unit, target, ok } of await run()) {
    const digits = Math.abs(value) >= 100 ? 0 : 2;
    console.log(`${ok ? 'ok  ' : 'MISS'} ${what}: ${value.toFixed(digits)} ${unit}${target === null ? '' : ` (${target})`}`);
    if (!ok) missed += 1;
  }
}
console.log(missed === 0 ? 'every figure is within its bar' : `${missed} outside their bars`);
