import { expect, it } from 'vitest';

import { makeRunResult } from '../testing/runs';
import type { RunResult } from '../wire';
import { describeResult, resultKey } from './describe-result';

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

it('compute workload counts operations', () => {
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
