import { expect, it } from 'vitest';

import { grouped } from './grouped';

it('groups and members keep their order', () => {
  expect([...grouped(['b1', 'a1', 'b2'], ([letter]) => letter)]).toEqual([
    ['b', ['b1', 'b2']],
    ['a', ['a1']],
  ]);
});
