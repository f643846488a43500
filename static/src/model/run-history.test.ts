import { expect, it, vi } from 'vitest';

import { NOW } from '../testing/frames';
import { ITEMS, makeRunResult, makeRunState } from '../testing/runs';
import type { RunDetails, RunItem } from '../wire';
import { RunHistory } from './run-history';

const item = (rate: number, verified = true): RunItem => ({
  item: 'result',
  ...makeRunResult({ bytes_per_second: rate, verified }),
});

it('missing items are requested once', async () => {
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
