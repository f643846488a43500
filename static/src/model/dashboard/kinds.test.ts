import { expect, it } from 'vitest';

import { findNearestWord } from './kinds';

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
