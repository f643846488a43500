import { describe, expect, it } from 'vitest';

import { NOW } from '../testing/frames';
import { makeRunState, makeRunResult } from '../testing/runs';
import type { RunResult } from '../wire';
import {
  describeStep,
  describeTimeLeft,
  deviceNames,
  completedShare,
  remainingTime,
  titleOf,
  describeResult,
  resultKey,
} from './describe-run';

describe('run texts', () => {
  it('run description has current workload and progress', () => {
    expect(describeStep(makeRunState())).toBe('triad, 1 of 2: measuring');
    expect(completedShare(makeRunState())).toBe(0.25);
    expect(describeStep(makeRunState({ step: null }))).toBe('starting');
    expect(completedShare(makeRunState({ step: null }))).toBeNull();
    expect(completedShare(makeRunState({ steps: 1, share: null }))).toBeNull();
  });

  it('run without a name gets a default name', () => {
    expect(titleOf(makeRunState({ title: '' }))).toBe('run in a terminal');
    expect(titleOf(makeRunState({ title: 'a\u202eb' }))).toBe('a\ufffdb');
    const devices = [
      { index: 1, name: 'NVIDIA H200' },
      { index: null, name: 'A CPU' },
    ];
    expect(deviceNames(makeRunState({ devices }))).toBe('GPU 1, A CPU');
  });
});

describe('remaining time of a run', () => {
  const step = { id: 'triad', phase: 'measuring', since_ms: NOW - 2000 } as const;

  it('completed steps predict time of remaining steps', () => {
    // In three seconds, 1.5 of the 4 steps were completed, so the other 2.5 steps take five
    // seconds.
    const state = makeRunState({
      steps: 4,
      share: 0.5,
      started_ms: NOW - 3000,
      step: { ...step, number: 1 },
    });
    expect(remainingTime(state, NOW)).toBe(5000);
    expect(remainingTime({ ...state, step: { ...step, number: 0 } }, NOW)).toBeNull();
    expect(remainingTime({ ...state, step: null }, NOW)).toBeNull();
  });

  it('remaining time follows from progress of single step', () => {
    const alone = makeRunState({ steps: 1, share: 0.25, step: { ...step, number: 0 } });
    expect(remainingTime(alone, NOW)).toBe(6000);
    expect(remainingTime({ ...alone, share: 0.01 }, NOW)).toBeNull();
    const filling = { ...alone, kind: 'oom', seconds: 10 } as const;
    expect(remainingTime(filling, NOW)).toBe(16_000);
    expect(remainingTime({ ...filling, step: { ...step, number: 0, phase: 'holding' } }, NOW)).toBe(
      8000,
    );
  });

  it('remaining time is rounded to its precision', () => {
    const texts = [300, 7100, 12_300, 61_000].map((ms) =>
      describeTimeLeft(ms).replaceAll('\u00a0', ' '),
    );
    expect(texts).toEqual([
      'about 1 s left',
      'about 8 s left',
      'about 15 s left',
      'about 2 min left',
    ]);
  });
});

function describeTexts(
  changes: Partial<RunResult> = {},
  last: RunResult | null = null,
): Record<string, string> {
  const parts = Object.entries(describeResult(makeRunResult(changes), last));
  return Object.fromEntries(
    parts.map(([name, { text }]) => [name, text.replaceAll('\u00a0', ' ')]),
  );
}

it('result is compared with peak and last result', () => {
  expect(describeTexts()).toEqual({
    rate: '4,020 GB/s',
    last: '–',
    peak: '4,800 GB/s',
    share: '84 %',
    time: '534 µs',
    result: 'verified',
  });
  expect(describeTexts({}, makeRunResult({ bytes_per_second: 4e12 })).last).toBe(
    '4,000 GB/s (+0.5 %)',
  );
  expect(describeTexts({}, makeRunResult({ bytes_per_second: 8.04e12 })).last).toBe(
    '8,040 GB/s (−50.0 %)',
  );
});

it('rate of compute workload is in operations', () => {
  const compute = { limit: 'compute', peak_per_second: 9.89e14 };
  expect(describeTexts({ ...compute, operations_per_second: 7.12e14 })).toMatchObject({
    rate: '712 TFLOP/s',
    peak: '989 TFLOP/s',
  });
  expect(describeTexts({ ...compute, operations_per_second: 3e9, dtype: 'int8' }).rate).toBe(
    '3.00 GOP/s',
  );
});

it('missing values and failed verification are explained', () => {
  const absent = { absent: 'unknown' } as const;
  const parts = describeResult(
    makeRunResult({
      device_us: absent,
      share: absent,
      peak_per_second: absent,
      verified: false,
      wrong: 3,
      host_us: 2e6,
    }),
    null,
  );
  expect([parts.peak, parts.share].map(({ title }) => title)).toEqual(
    Array(2).fill('The theoretical peak is not known.'),
  );
  expect(parts.time).toMatchObject({
    text: '2.00\u00a0s',
    title: expect.stringContaining('host clock') as string,
  });
  expect(parts.result).toMatchObject({
    text: 'mismatch',
    title: expect.stringContaining('3 of 1000') as string,
  });
});

it('results are compared by workload and device name', () => {
  expect(resultKey(makeRunResult())).toBe(resultKey(makeRunResult({ share: 1 })));
  const others = [{ id: 'copy' }, { dtype: 'fp64' }, { device: 'CPU' }].map((change) =>
    resultKey(makeRunResult(change)),
  );
  expect(new Set([resultKey(makeRunResult()), ...others]).size).toBe(4);
});
