/** Memoization of values that do not change with every frame. */

import { units } from './format';

/**
 * Returns a function that caches the last result of `make`, and calls `make` again only if an
 * argument or the units have changed.
 */
export function memoizeLast<Args extends readonly unknown[], Result>(
  make: (...args: Args) => Result,
): (...args: Args) => Result {
  let last: { of: readonly unknown[]; result: Result } | null = null;
  return (...args) => {
    const of = [units(), ...args];
    if (last?.of.every((value, i) => value === of[i]) !== true) {
      last = { of, result: make(...args) };
    }
    return last.result;
  };
}
