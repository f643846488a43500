import { expect, it, vi } from 'vitest';

import { NOW } from '../testing/frames';
import { ITEMS, makeRunResult, makeRunState } from '../testing/runs';
import type { RunDetails, RunItem } from '../wire';
import { RunHistory, compareRuns, toCsv, toJson } from './run-results';

const item = (rate: number, verified = true): RunItem => ({
  item: 'result',
  ...makeRunResult({ bytes_per_second: rate, verified }),
});

it('missing run items are requested once', async () => {
  const fetch = vi.fn((run: string) =>
    Promise.resolve({ ...makeRunState({ run }), all: [...ITEMS] }),
  );
  const onChange = vi.fn();
  const history = new RunHistory(fetch, onChange);
  history.update([makeRunState({ items: 1, newest: ITEMS[0] ?? null })]);
  expect([history.itemsOf('r1').length, history.version, fetch.mock.calls.length]).toEqual([
    1, 1, 0,
  ]);
  history.update([makeRunState({ items: ITEMS.length })]);
  history.update([makeRunState({ items: ITEMS.length })]);
  await vi.waitFor(() => expect(onChange).toHaveBeenCalled());
  expect(fetch.mock.calls).toEqual([['r1']]);
  expect(history.itemsOf('r1')).toEqual(ITEMS);
  expect(history.version).toBe(ITEMS.length);
});

it('failed request is repeated only after retry', async () => {
  const fetch = vi.fn(() => Promise.resolve<RunDetails | null>(null));
  const onChange = vi.fn();
  const history = new RunHistory(fetch, onChange);
  const update = async (): Promise<void> => {
    history.update([makeRunState({ items: ITEMS.length })]);
    await Promise.resolve();
  };
  await update();
  await update();
  await update();
  expect([fetch.mock.calls.length, onChange.mock.calls.length]).toEqual([1, 0]);
  history.allowRetries();
  fetch.mockResolvedValue({ ...makeRunState(), all: [...ITEMS] });
  await update();
  await update();
  expect(fetch).toHaveBeenCalledTimes(2);
  expect(history.itemsOf('r1')).toEqual(ITEMS);
});

it('result is compared with newest earlier verified one', () => {
  const history = new RunHistory(() => Promise.resolve(null), vi.fn());
  const run = (
    name: string,
    started_ms: number,
    newest: RunItem,
  ): ReturnType<typeof makeRunState> => makeRunState({ run: name, started_ms, items: 1, newest });
  const runs = [
    run('a', NOW, item(1)),
    run('b', NOW + 1, item(2)),
    run('c', NOW + 2, item(3, false)),
    run('d', NOW + 3, item(4)),
  ];
  history.update(runs);
  expect(history.runs.map((each) => each.run)).toEqual(['d', 'c', 'b', 'a']);
  const before = runs.map((each) => history.findPrevious(each, makeRunResult())?.bytes_per_second);
  expect(before).toEqual([undefined, 1, 2, 2]);
  expect(
    history.findPrevious(runs[3] ?? makeRunState(), makeRunResult({ device: 'CPU' })),
  ).toBeNull();
});

it('comparison pairs results and keeps unpaired ones', () => {
  const [triad, copy, read] = ['triad', 'copy', 'read'].map((id) => makeRunResult({ id }));
  if (triad === undefined || copy === undefined || read === undefined) {
    throw new Error('no results');
  }
  const onCpu = { ...triad, device: 'CPU' };
  expect(compareRuns([triad, copy], [read, onCpu])).toEqual([
    { before: triad, after: onCpu, either: triad },
    { before: copy, after: null, either: copy },
    { before: null, after: read, either: read },
  ]);
  expect(compareRuns([triad], [{ ...triad, dtype: 'fp64' }])).toHaveLength(2);
});

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
