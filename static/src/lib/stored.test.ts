// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';

import { Stored } from './stored';

afterEach(() => {
  vi.restoreAllMocks();
  localStorage.clear();
});

/** Makes these methods of `localStorage` throw. */
function refuse(...methods: ('getItem' | 'setItem' | 'removeItem')[]): void {
  for (const method of methods) {
    vi.spyOn(Storage.prototype, method).mockImplementation(() => {
      throw new DOMException('', 'QuotaExceededError');
    });
  }
}

it('stored value survives until it is removed', () => {
  new Stored('a').set('1');
  expect(new Stored('a').get()).toBe('1');
  new Stored('a').set(null);
  expect(new Stored('a').get()).toBeNull();
});

it('full storage keeps the value on the page', () => {
  const stored = new Stored('a');
  stored.set('before');
  refuse('setItem');
  stored.set('after');
  expect(stored.get()).toBe('after');
  stored.set(null);
  expect(stored.get()).toBeNull();
});

it('forbidden storage keeps the value on the page', () => {
  refuse('getItem', 'setItem', 'removeItem');
  const stored = new Stored('a');
  expect(stored.get()).toBeNull();
  stored.set('1');
  expect(stored.get()).toBe('1');
});
