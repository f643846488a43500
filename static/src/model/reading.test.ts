import { describe, expect, it } from 'vitest';

import type { Reading } from '../wire';
import { absenceOf, readingTime, valueOf } from './reading';

describe('readings', () => {
  it('reading has value with or without time', () => {
    expect(valueOf(64)).toBe(64);
    expect(valueOf([1] as Reading<number[]>)).toEqual([1]);
    const structure: Reading<{ sm_percent: number }> = { sm_percent: 95 };
    expect(valueOf(structure)).toEqual({ sm_percent: 95 });
    const dated: Reading<{ sm_percent: number }> = { value: { sm_percent: 95 }, at_ms: 7 };
    expect(valueOf(dated)).toEqual({ sm_percent: 95 });
    expect(readingTime(dated)).toBe(7);
    expect(readingTime(structure)).toBeNull();
  });

  it('missing reading has reason and no value', () => {
    const absent: Reading<{ sm_percent: number }> = { absent: 'not_supported' };
    expect(valueOf(absent)).toBeNull();
    expect(absenceOf(absent)).toEqual({ absent: 'not_supported' });
    expect(absenceOf(0)).toBeNull();
  });
});
