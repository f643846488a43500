import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import type { Fleet } from '../../wire';
import { columnsOf } from './columns';
import { parseFilter } from './filter';
import { nodesOf } from './nodes';
import { totalsOf } from './totals';

interface Cases {
  fleet: Fleet;
  /** Mean utilization in percent; `null` if no GPU reports it. */
  means: { nodes: Record<string, number | null>; fleet: number };
  /** `rows` is `null` if all rows are shown. */
  filters: { typed: string; rows: number[] | null }[];
  mistakes: { typed: string; words: string }[];
}

const file = new URL('../../../../tests/fleet-cases.json', import.meta.url);
const { fleet, means, filters, mistakes } = JSON.parse(readFileSync(file, 'utf8')) as Cases;
const columns = columnsOf(fleet);

it('filters match same rows as terminal', () => {
  for (const { typed, rows } of filters) {
    const { match, mistakes } = parseFilter(typed);
    const shown = match(columns);
    expect(mistakes, typed).toEqual([]);
    expect(shown && [...shown.keys()].filter((row) => shown[row] === 1), typed).toEqual(rows);
  }
});

it('invalid filters say what is wrong', () => {
  for (const { typed, words } of mistakes) {
    expect(parseFilter(typed).mistakes.join('\n'), typed).toContain(words);
  }
});

it('mean utilization ignores GPUs without reading', () => {
  const { utilization } = nodesOf(columns);
  const known = (value = NaN): number | null => (Number.isNaN(value) ? null : value);
  expect(
    Object.fromEntries(fleet.nodes.name.map((name, node) => [name, known(utilization[node])])),
  ).toEqual(means.nodes);
  expect(totalsOf(columns, null).utilization).toBe(means.fleet);
});
