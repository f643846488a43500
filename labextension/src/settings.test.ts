import { expect, it, vi } from 'vitest';

import { properties } from '../schema/plugin.json';
import { followSettings } from './settings';

it('the defaults of the schema hold where settings cannot be read', async () => {
  const apply = vi.fn();
  await followSettings(null, 'gpumon:plugin', apply);
  const defaults = Object.entries(properties).map(([name, setting]) => [name, setting.default]);
  expect(apply).toHaveBeenLastCalledWith(Object.fromEntries(defaults));
});
