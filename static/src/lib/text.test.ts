import { readFileSync } from 'node:fs';

import { expect, it } from 'vitest';

import { plainText, shortenName } from './text';

interface Cases {
  invisible: string[];
  visible: string[];
}

it('invisible characters are replaced, others are kept', () => {
  const file = new URL('../../../tests/invisible-characters.json', import.meta.url);
  const { invisible, visible } = JSON.parse(readFileSync(file, 'utf8')) as Cases;
  for (const digits of invisible) {
    expect(plainText(String.fromCodePoint(parseInt(digits, 16))), digits).toBe('\ufffd');
  }
  for (const digits of visible) {
    const letter = String.fromCodePoint(parseInt(digits, 16));
    expect(plainText(letter), digits).toBe(letter);
  }
});

it('long names keep their start and end', () => {
  expect(shortenName('a/b.ipynb', 9)).toBe('a/b.ipynb');
  expect(shortenName('first-experiment/train.ipynb', 20)).toBe('first-…t/train.ipynb');
});
