import { expect, it } from 'vitest';

import { UNITS } from './unit';

it('temperature ticks have distinguishing decimals', () => {
  const ticks = (...values: number[]): string[] =>
    UNITS.celsius.ticks(values).map((text) => text.replace('\u00a0', ' '));
  expect(ticks(20, 40, 60)).toEqual(['20 °C', '40 °C', '60 °C']);
  expect(ticks(64, 64.5, 65)).toEqual(['64.0 °C', '64.5 °C', '65.0 °C']);
});
