import { expect, it, vi } from 'vitest';

import { Sight } from './sight';

it('of what is not seen lets it be written once in a while, and of what is seen always', () => {
  vi.stubGlobal('IntersectionObserver', vi.fn());
  const sight = new Sight(1000);
  const times = [0, 1000, 3900, 4000, 8900, 9000, 9100];
  expect(times.map((now_ms) => sight.rests(now_ms))).toEqual([false, true, true, false, true, false, true]);
  sight.onScreen = true;
  expect(sight.rests(9200)).toBe(false);
  vi.unstubAllGlobals();
});

it('is on everything where nobody tells', () => {
  expect(new Sight().rests(0) || new Sight().rests(1)).toBe(false);
  const sight = new Sight();
  sight.rests(0);
  expect(sight.rests(1)).toBe(false);
});
