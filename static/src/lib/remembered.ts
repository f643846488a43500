/** What need not be made anew for each drawing. */

import { units } from './units';

/**
 * Like `make`, which is called again only where an argument or the units are others than the last
 * time.
 */
export function remembered<Args extends readonly unknown[], Result>(
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
