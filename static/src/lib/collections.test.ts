import { expect, it } from 'vitest';

import { groupBy } from './collections';

it('groups and members keep their order', () => {
  expect([...groupBy(['b1', 'a1', 'b2'], ([letter]) => letter)]).toEqual([
    ['b', ['b1', 'b2']],
    ['a', ['a1']],
  ]);
});
