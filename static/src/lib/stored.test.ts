// @vitest-environment jsdom
import { afterEach, expect, it, vi } from 'vitest';

import { StoredValue } from './stored';

afterEach(() => {
  vi.restoreAllMocks();
  localStorage.clear();
});

/** Makes these methods of `localStorage` throw. */
function makeStorageThrow(...methods: ('getItem' | 'setItem' | 'removeItem')[]): void {
  for (const method of methods) {
    vi.spyOn(Storage.prototype, method).mockImplementation(() => {
      throw new DOMException('', 'QuotaExceededError');
    });
  }
}

it('stored value survives until it is removed', () => {
  new StoredValue('a').set('1');
  expect(new StoredValue('a').get()).toBe('1');
  new StoredValue('a').set(null);
  expect(new StoredValue('a').get()).toBeNull();
});

it('value is kept in memory if storage full', () => {
  const stored = new StoredValue('a');
  stored.set('before');
  makeStorageThrow('setItem');
  stored.set('after');
  expect(stored.get()).toBe('after');
  stored.set(null);
  expect(stored.get()).toBeNull();
});

it('value is kept in memory if storage forbidden', () => {
  makeStorageThrow('getItem', 'setItem', 'removeItem');
  const stored = new StoredValue('a');
  expect(stored.get()).toBeNull();
  stored.set('1');
  expect(stored.get()).toBe('1');
});
