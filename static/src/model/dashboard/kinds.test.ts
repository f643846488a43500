import { expect, it } from 'vitest';

import { findNearestWord, metricsOnRequest } from './kinds';
import { DRAWN_METRICS } from './plots';

it('nearest word has the fewest character changes', () => {
  const words = ['power', 'pcie', 'temperature', 'sm active'];
  for (const [word, meant] of [
    ['powr', 'power'],
    ['temprature', 'temperature'],
    ['SM-active'.toLowerCase(), 'sm active'],
    ['pci', 'pcie'],
    ['', 'pcie'],
  ] as const) {
    expect(findNearestWord(word, words)).toBe(meant);
  }
  expect(findNearestWord('power', [])).toBeNull();
});

it('metrics of limits are requested only if shown', () => {
  expect(DRAWN_METRICS).toContain('power.draw_watts');
  expect(DRAWN_METRICS.join()).not.toContain('limits.');
  expect(metricsOnRequest(['power', 'power.draw_watts', 'cpu'])).toEqual([]);
  expect(metricsOnRequest(['power', 'limits'])).toHaveLength(12);
  expect(metricsOnRequest(['limits.host_percent', 'pcie.width'])).toEqual([
    'limits.host_percent',
    'pcie.width',
  ]);
});
