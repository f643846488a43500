import { readFileSync } from 'node:fs';

import { describe, expect, it } from 'vitest';

import { GIB } from '../testing/frames';
import type { CellRun, StoredCost } from '../wire';
import { EXECUTION_KEY, belongsToRun, readStoredCost, makeCellRun } from './cell-cost';
import { describeStoredCost } from './describe-cell';

const RUN: CellRun = { source_crc32: 2 ** 32 - 1, execution_count: 3, started: null };
const STORED: StoredCost = {
  version: 1,
  duration_s: 12.3,
  gpu_s: 9.81,
  peak_memory_bytes: 61 * GIB,
  memory_change_bytes: -8 * GIB - 1024 ** 2,
  energy_joules: 6100,
  shared: false,
  gpus: ['NVIDIA H200', 'NVIDIA H200'],
  run: RUN,
};

/**
 * A run, and a cell from a file. `fits` is whether the run is the cell's last one, so that a cost
 * stored for the run belongs to the cell.
 */
interface RunCase {
  name: string;
  cell: {
    source: string | string[];
    execution_count: number | null;
    metadata: Record<string, unknown>;
  };
  run: CellRun | null;
  fits: boolean;
}

describe('stored cost', () => {
  it('stored cost can be read again', () =>
    expect(readStoredCost(JSON.parse(JSON.stringify(STORED)))).toEqual(STORED));

  it('unknown values of stored cost remain null', () => {
    const stored = { ...STORED, gpu_s: null, peak_memory_bytes: null, energy_joules: null };
    expect(readStoredCost({ ...stored, gpus: ['GPU'] })).toEqual({ ...stored, gpus: ['GPU'] });
  });
});

describe('metadata of a notebook', () => {
  it.each([
    [undefined],
    [null],
    ['12 s'],
    [[STORED]],
    [{}],
    [{ ...STORED, version: 2 }],
    [{ ...STORED, version: '1' }],
    [{ ...STORED, duration_s: '12.3' }],
    [{ ...STORED, duration_s: -1 }],
    [{ ...STORED, duration_s: 1e300 }],
    [{ ...STORED, duration_s: NaN }],
    [{ ...STORED, gpu_s: undefined }],
    [{ ...STORED, gpu_s: [1] }],
    [{ ...STORED, peak_memory_bytes: 1e30 }],
    [{ ...STORED, memory_change_bytes: -1e30 }],
    [{ ...STORED, energy_joules: { least: 1, most: 2 } }],
    [{ ...STORED, shared: 'no' }],
    [{ ...STORED, gpus: 'NVIDIA H200' }],
    [{ ...STORED, gpus: [1] }],
    [{ ...STORED, gpus: Array.from({ length: 5000 }, () => 'NVIDIA H200') }],
  ])('invalid cost %j is ignored', (metadata) => expect(readStoredCost(metadata)).toBeNull());

  it('unknown fields and invisible characters are removed', () => {
    const gpus = ['H\u202e200', 'x'.repeat(500)];
    const read = readStoredCost({ ...STORED, gpus, further: { a: 1 } });
    expect(read?.gpus[0]).toBe('H\ufffd200');
    expect(read?.gpus[1]).toHaveLength(80);
    expect(Object.keys(read ?? {})).toEqual(Object.keys(STORED));
  });
});

it('stored cost is compared with the last run', () => {
  const file = new URL('../../../tests/stored-cost-runs.json', import.meta.url);
  for (const { name, cell, run, fits } of JSON.parse(readFileSync(file, 'utf8')) as RunCase[]) {
    const source = [cell.source].flat().join('');
    const last = makeCellRun(source, cell.execution_count, cell.metadata[EXECUTION_KEY]);
    const stored = readStoredCost({ ...STORED, run });
    expect(stored !== null && belongsToRun(stored, last), name).toBe(fits);
  }
});

it.each([[undefined], [null], [7], [{}], [{ ...RUN, source_crc32: -1 }], [{ ...RUN, started: 7 }]])(
  'invalid run %j is read as unknown',
  (run) => expect(readStoredCost({ ...STORED, run })?.run).toBeNull(),
);

it('stored cost counts GPUs by model', () => {
  const titles = (gpus: string[], isLastRun = false): string[] => [
    ...new Set(describeStoredCost({ ...STORED, gpus }, isLastRun).map((part) => part.title)),
  ];
  const texts = describeStoredCost(STORED, false).map(({ text }) => text.replaceAll('\u00a0', ' '));
  expect(texts).toEqual(['12.3 s', 'GPU 9.81 s', 'peak 61.0 GiB (−8.00)', '6.10 kJ']);
  expect(titles(['H200', 'L4', 'H200'])).toEqual([
    'Earlier run on 2 × H200, L4, stored in the notebook',
  ]);
  expect(titles([])).toEqual(['Earlier run, stored in the notebook']);
  expect(titles(['H200'], true)).toEqual(['Last run on H200, stored in the notebook']);
  expect(titles([], true)).toEqual(['Last run, stored in the notebook']);
});
