import { expect, it, vi } from 'vitest';

import { Visibility } from './visibility';

it('of what is not seen lets it be written once in a while, and of what is seen always', () => {
  vi.stubGlobal('IntersectionObserver', vi.fn());
  const visibility = new Visibility(1000);
  const times = [0, 1000, 3900, 4000, 8900, 9000, 9100];
  expect(times.map((now_ms) => visibility.skips(now_ms))).toEqual([
    false,
    true,
    true,
    false,
    true,
    false,
    true,
  ]);
  visibility.onScreen = true;
  expect(visibility.skips(9200)).toBe(false);
  vi.unstubAllGlobals();
});

it('is on everything where nobody tells', () => {
  expect(new Visibility().skips(0) || new Visibility().skips(1)).toBe(false);
  const visibility = new Visibility();
  visibility.skips(0);
  expect(visibility.skips(1)).toBe(false);
});
