import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import type { Fleet } from '../../wire';
import { columnsOf, FIELDS, type Readings } from './columns';
import { parseFilter } from './filter';
import { isPartiallyReported, totalsOf } from './totals';

interface Cases {
  fleet: Fleet;
  /**
   * The mean utilization of each node and of the fleet in percent; `null` if no GPU of a node
   * reports it.
   */
  means: { nodes: Record<string, number | null>; fleet: number };
  /**
   * The filters as typed, each with the rows that it shows; `rows` is `null` if all rows are
   * visible.
   */
  filters: { typed: string; rows: number[] | null }[];
  /** The filters as typed, each with its complete error message. */
  mistakes: { typed: string; error: string }[];
  /**
   * For each filter, the readings of all matching GPUs together. `partial` contains the readings
   * that some of these GPUs do not report.
   */
  selections: {
    typed: string;
    gpus: number;
    readings: Record<string, number | null>;
    partial: string[];
  }[];
}

const file = new URL('../../../../fleet/filter-cases.json', import.meta.url);
const { fleet, means, filters, mistakes, selections } = JSON.parse(
  readFileSync(file, 'utf8'),
) as Cases;
const columns = columnsOf(fleet);
const known = (value = NaN): number | null => (Number.isNaN(value) ? null : value);

it('filters match the same rows as the terminal', () => {
  for (const { typed, rows } of filters) {
    const { match, mistakes } = parseFilter(typed);
    const shown = match(columns);
    expect(mistakes, typed).toEqual([]);
    expect(shown && [...shown.keys()].filter((row) => shown[row] === 1), typed).toEqual(rows);
  }
});

it('invalid filters show an error message', () => {
  for (const { typed, error } of mistakes) {
    expect(parseFilter(typed).mistakes, typed).toEqual([error]);
  }
});

it('mean utilization ignores GPUs without readings', () => {
  const { utilization } = columns.nodes.readings;
  expect(
    Object.fromEntries(fleet.nodes.name.map((name, node) => [name, known(utilization[node])])),
  ).toEqual(means.nodes);
  expect(totalsOf(columns, null).readings.utilization[0]).toBe(means.fleet);
});

it('selected GPUs have same sums as in terminal', () => {
  for (const { typed, gpus, readings, partial } of selections) {
    const shown = parseFilter(typed).match(columns) ?? new Uint8Array(columns.count).fill(1);
    const totals = totalsOf(columns, shown);
    expect(totals.gpus[0], typed).toBe(gpus);
    for (const [key, id] of Object.entries(FIELDS) as [keyof Readings, string][]) {
      expect(known(totals.readings[key][0]), `${typed} ${id}`).toBe(readings[id]);
      expect(isPartiallyReported(totals, key), `${typed} ${id}`).toBe(partial.includes(id));
    }
  }
});

it('sums of all GPUs come from the server', () => {
  const all = totalsOf(columns, new Uint8Array(columns.count).fill(1));
  const { readings, gpus, states, reporting } = totalsOf(columns, null);
  expect(all).toMatchObject({ readings, gpus, reporting });
  for (const [state, many] of Object.entries(states)) {
    expect(all.states[state as keyof typeof states]?.[0] ?? 0, state).toBe(many[0]);
  }
});
