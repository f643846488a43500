import { expect, it } from 'vitest';

import { NOW } from '../testing/frames';
import { ITEMS, makeRunResult, makeRunState } from '../testing/runs';
import type { RunDetails } from '../wire';
import { toCsv, toJson } from './run-export';

const RUN: RunDetails = { ...makeRunState({ started_ms: NOW }), all: [...ITEMS] };

it('CSV has one row per result', () => {
  const [head, first, second, ...rest] = toCsv([RUN]).split('\r\n');
  expect(head?.split(',').slice(0, 4)).toEqual(['run', 'started', 'workload', 'dtype']);
  const started = new Date(NOW).toISOString();
  expect(first).toBe(
    `"r1",${started},"triad","fp32","NVIDIA H200",4020000000000,700000000000,4800000000000,0.84,"memory",534.2,541,true,1000,0`,
  );
  expect(second?.split(',').slice(8)).toEqual([
    '',
    '"memory"',
    '534.2',
    '541',
    'false',
    '1000',
    '3',
  ]);
  expect(rest).toEqual(['']);
});

it('formula-like name is exported as text', () => {
  const result = {
    item: 'result',
    ...makeRunResult({ id: '=cmd()', device: 'a "b", c' }),
  } as const;
  expect(toCsv([{ ...RUN, all: [result] }])).toContain(`,"'=cmd()","fp32","a ""b"", c",`);
});

it('JSON contains all data', () => {
  expect(JSON.parse(toJson([RUN]))).toEqual({ runs: [RUN] });
});
