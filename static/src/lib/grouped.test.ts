import { expect, it } from 'vitest';

import { grouped } from './grouped';

it('groups stand in the order of their first, and each in that of all', () => {
  expect([...grouped(['b1', 'a1', 'b2'], ([letter]) => letter)]).toEqual([
    ['b', ['b1', 'b2']],
    ['a', ['a1']],
  ]);
});
