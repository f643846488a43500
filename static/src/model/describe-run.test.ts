import { describe, expect, it } from 'vitest';

import {
  describeStep,
  describeTimeLeft,
  deviceNames,
  completedShare,
  remainingTime,
  titleOf,
} from './describe-run';
import { NOW } from '../testing/frames';
import { makeRunState } from '../testing/runs';

describe('run texts', () => {
  it('text has device and progress', () => {
    expect(describeStep(makeRunState())).toBe('triad, 1 of 2: measuring');
    expect(completedShare(makeRunState())).toBe(0.25);
    expect(describeStep(makeRunState({ step: null }))).toBe('starting');
    expect(completedShare(makeRunState({ step: null }))).toBeNull();
    expect(completedShare(makeRunState({ steps: 1, share: null }))).toBeNull();
  });

  it('unnamed run has a default name', () => {
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
    // One and a half of the four steps took three seconds, so the remaining steps take five.
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

  it('remaining time follows from share of single step', () => {
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
