import { describe, expect, it } from 'vitest';

import { resultParts, shareOf, describeStep, titleOf } from './describe-run';
import { runResult, runState } from '../testing/runs';

const said = (changes = {}): string[] =>
  resultParts(runResult(changes)).map(({ text }) => text.replaceAll('\u00a0', ' '));

describe('a result', () => {
  it('tells rate, share, both times and that it was checked', () =>
    expect(said()).toEqual(['4,020 GB/s', '84 % of peak', '534 µs device time', '541 µs host time', 'verified']));

  it('of what computes counts operations', () => {
    expect(said({ limit: 'compute', operations_per_second: 7.12e14 })[0]).toBe('712 TFLOP/s');
    expect(said({ limit: 'compute', operations_per_second: 3e9, dtype: 'int8' })[0]).toBe('3.00 GOP/s');
  });

  it('says of what is absent why, and is not right where it was not verified', () => {
    const absent = { absent: 'unknown' } as const;
    const parts = resultParts(runResult({ device_us: absent, share: absent, verified: false, wrong: 3, host_us: 2e6 }));
    expect(parts.map(({ text }) => text.replaceAll('\u00a0', ' '))).toEqual([
      '4,020 GB/s',
      'of peak –',
      'device time –',
      '2.00 s host time',
      'mismatch',
    ]);
    expect(parts.filter(({ absent }) => absent).map(({ title }) => title)).toEqual([
      'The theoretical peak is not known.',
      'Not timed, or no device clock (CPU).',
    ]);
    expect(parts.at(-1)?.title).toContain('3 of 1000');
  });
});

describe('a run', () => {
  it('says where it is and how far', () => {
    expect(describeStep(runState())).toBe('triad, 1 of 2: measuring');
    expect(shareOf(runState())).toBe(0.25);
    expect(describeStep(runState({ step: null }))).toBe('starting');
    expect(shareOf(runState({ step: null }))).toBeNull();
    expect(shareOf(runState({ steps: 1, share: null }))).toBeNull();
  });

  it('has a name whatever its terminal calls it', () => {
    expect(titleOf(runState({ title: '' }))).toBe('run in a terminal');
    expect(titleOf(runState({ title: 'a\u202eb' }))).toBe('a\ufffdb');
  });
});
