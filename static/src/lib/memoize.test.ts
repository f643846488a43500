import { afterEach, expect, it, vi } from 'vitest';

import { chooseUnits } from './format';
import { memoizeLast } from './memoize';

afterEach(() => chooseUnits({ memory: 'GiB', temperature: '°C' }));

it('changed arguments or units recompute the result', () => {
  const make = vi.fn((a: object, b: number) => [a, b]);
  const get = memoizeLast(make);
  const a = {};
  expect(get(a, 1)).toBe(get(a, 1));
  expect(make).toHaveBeenCalledTimes(1);
  expect(get(a, 2)).toEqual([a, 2]);
  expect(get({}, 2)).toEqual([{}, 2]);
  get(a, 2);
  chooseUnits({ memory: 'GB', temperature: '°C' });
  get(a, 2);
  expect(make).toHaveBeenCalledTimes(5);
});
